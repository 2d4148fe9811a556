package carillon.bench;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.Locale;

/** Time on the CPU, bytes on the heap, and the lines of JSON. */
final class Measure {
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
  private static final com.sun.management.OperatingSystemMXBean PROCESS =
      (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  private Measure() {}

  /** Nanoseconds of this thread. What garbage collection costs is on other threads, and not in it. */
  static long threadTime() {
    return THREADS.getCurrentThreadCpuTime();
  }

  /** Nanoseconds of all threads, the collector's and the compiler's, too. */
  static long processTime() {
    return PROCESS.getProcessCpuTime();
  }

  static long heap() {
    Runtime runtime = Runtime.getRuntime();
    for (int i = 0; i < 3; i++) runtime.gc();
    return runtime.totalMemory() - runtime.freeMemory();
  }

  /** Prints one line, of the form that {@code carillon_bench_wheel --json} has. */
  static void print(int n, String workload, String system, double... runs) {
    Arrays.sort(runs);
    int half = runs.length / 2;
    double median = runs.length % 2 == 1 ? runs[half] : (runs[half - 1] + runs[half]) / 2;
    System.out.printf(
        Locale.ROOT,
        "{\"n\": %d, \"workload\": \"%s\", \"system\": \"%s\", \"unit\": \"%s\", "
            + "\"median\": %.3f, \"min\": %.3f, \"max\": %.3f, \"runs\": %d}%n",
        n, workload, system, workload.equals("W6") ? "bytes" : "ns",
        median, runs[0], runs[runs.length - 1], runs.length);
  }
}
