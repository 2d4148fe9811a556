package carillon.bench;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.Locale;

/** CPU time, bytes on the heap, and the lines of JSON. */
final class Measure {
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
  private static final com.sun.management.OperatingSystemMXBean PROCESS =
      (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  private Measure() {}

  /** CPU time of this thread in ns. It excludes garbage collection, which has its own threads. */
  static long threadTime() {
    return THREADS.getCurrentThreadCpuTime();
  }

  /** CPU time of all threads in ns, including those of the collector and the compiler. */
  static long processTime() {
    return PROCESS.getProcessCpuTime();
  }

  /** Bytes in use on the heap, after garbage collection. */
  static long heap() {
    Runtime runtime = Runtime.getRuntime();
    for (int i = 0; i < 3; i++) runtime.gc();
    return runtime.totalMemory() - runtime.freeMemory();
  }

  /** Prints one line, in the format of {@code carillon_bench_wheel --json}. */
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
