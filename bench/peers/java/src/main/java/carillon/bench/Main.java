package carillon.bench;

import java.nio.file.Path;

/**
 * The wheel workloads (bench/wheel/workloads.h) on the timers of the JVM: {@code Main INPUTS RUNS}.
 */
public final class Main {
  private Main() {}

  public static void main(String[] arguments) throws Exception {
    if (arguments.length != 2) {
      System.err.println("usage: Main INPUTS RUNS");
      System.exit(2);
    }
    Inputs inputs = Inputs.read(Path.of(arguments[0]));
    int runs = Integer.parseInt(arguments[1]);
    RealTime realTime = new RealTime(inputs);
    realTime.measure("Netty wheel, 100 ms", () -> new RealTimers.Netty(100), runs);
    realTime.measure("Netty wheel, 1 ms", () -> new RealTimers.Netty(1), runs);
    realTime.measure("Kafka SystemTimer", RealTimers.Kafka::new, runs);
    realTime.measure("java ScheduledThreadPool", RealTimers.Executor::new, runs);
    realTime.measure("java.util.Timer", RealTimers.JavaUtil::new, runs);
    new VirtualDelayQueue(inputs).measure(runs);
    System.exit(0);
  }
}
