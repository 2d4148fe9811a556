package carillon.bench;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The CPU time that the process has used so far, and how often its threads went to sleep, not
 * counting the calling thread.
 */
record Usage(double cpuNs, double sleeps) {
  static Usage now() throws IOException {
    double cpu = 0;
    double sleeps = -sleeps(Path.of("/proc/thread-self"));
    try (DirectoryStream<Path> threads = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
      for (Path thread : threads) {
        try {
          cpu += Double.parseDouble(Files.readString(thread.resolve("schedstat")).split(" ")[0]);
          sleeps += sleeps(thread);
        } catch (IOException ended) {
          // A thread has ended meanwhile. It is none of the measured threads, which do not end.
        }
      }
    }
    return new Usage(cpu, sleeps);
  }

  Usage minus(Usage before) {
    return new Usage(cpuNs - before.cpuNs, sleeps - before.sleeps);
  }

  private static double sleeps(Path thread) throws IOException {
    for (String line : Files.readAllLines(thread.resolve("status"))) {
      if (line.startsWith("voluntary_ctxt_switches:")) {
        return Double.parseDouble(line.split("\\s+")[1]);
      }
    }
    throw new IOException(thread + ": no count of context switches");
  }
}
