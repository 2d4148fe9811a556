package carillon.bench;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The timer trials (bench/timer) on the timers of the JVM: {@code TimerTrials --systems} and {@code
 * TimerTrials SYSTEM TRIAL PRODUCERS TIMERS PAIRS LEAD SPAN}. The arguments are described in
 * bench/timer/child.h, the trials in bench/timer/trials.h. A shorter trial of the same kind warms
 * the JVM up before pairs, fire and late.
 */
final class TimerTrials {
  private static final int ON_THE_WAY = 1_000;
  private static final int FAR_MS = 30_000;
  private static final Runnable NOTHING = () -> {};

  private static final Map<String, RealTimer.Maker> SYSTEMS = new LinkedHashMap<>();

  static {
    SYSTEMS.put("Netty wheel, 100 ms", () -> new RealTimers.Netty(100));
    SYSTEMS.put("Netty wheel, 1 ms", () -> new RealTimers.Netty(1));
    SYSTEMS.put("Kafka SystemTimer", RealTimers.Kafka::new);
    SYSTEMS.put("java ScheduledThreadPool", RealTimers.Executor::new);
    SYSTEMS.put("java.util.Timer", RealTimers.JavaUtil::new);
    SYSTEMS.put("(a JVM without timers)", RealTimers.None::new);
  }

  private TimerTrials() {}

  public static void main(String[] arguments) throws Exception {
    if (arguments.length == 1 && arguments[0].equals("--systems")) {
      SYSTEMS.keySet().forEach(System.out::println);
      return;
    }
    if (arguments.length != 7 || !SYSTEMS.containsKey(arguments[0])) {
      System.err.println("usage: TimerTrials SYSTEM TRIAL PRODUCERS TIMERS PAIRS LEAD SPAN");
      System.exit(2);
    }
    RealTimer.Maker maker = SYSTEMS.get(arguments[0]);
    String trial = arguments[1];
    if (arguments[0].startsWith("(") && !trial.equals("idle")) return;
    int[] numbers = Arrays.stream(arguments).skip(2).mapToInt(Integer::parseInt).toArray();
    int timers = numbers[1];
    switch (trial) {
      case "pairs" -> {
        pairs(maker, 2, Math.min(100_000, timers), Math.min(1_000_000, numbers[2]), true);
        pairs(maker, numbers[0], timers, numbers[2], false);
      }
      case "fire", "late" -> {
        fire(maker, Math.min(50_000, timers), 500, 100, true);
        fire(maker, timers, numbers[3], numbers[4], false);
      }
      case "idle" -> idle(maker, timers, numbers[4]);
      default -> System.exit(2);
    }
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }

  private static void pairs(
      RealTimer.Maker maker, int producers, int timers, int pairs, boolean warmingUp)
      throws Exception {
    int each = timers / producers;
    int count = pairs / producers;
    RealTimer timer = maker.make();
    CyclicBarrier line = new CyclicBarrier(producers + 1);
    for (int producer = 0; producer < producers; producer++) {
      SplittableRandom random = new SplittableRandom(producer);
      Thread thread =
          new Thread(
              () -> {
                try {
                  Object[] handles = new Object[each + ON_THE_WAY];
                  for (int i = 0; i < handles.length; i++) {
                    handles[i] = timer.schedule(far(random), NOTHING);
                  }
                  line.await();
                  line.await();
                  for (int i = 0, slot = each; i < count; i++) {
                    timer.cancel(handles[slot]);
                    handles[slot] = timer.schedule(far(random), NOTHING);
                    if (++slot == handles.length) slot = each;
                  }
                  line.await();
                  if (!warmingUp) line.await(); // stay alive: its CPU time is read later
                } catch (Exception error) {
                  error.printStackTrace();
                  Runtime.getRuntime().halt(1);
                }
              });
      thread.setDaemon(true);
      thread.start();
    }
    line.await();
    Thread.sleep(timer.settlingMs(timers));
    Usage before = Usage.now();
    long start = System.nanoTime();
    line.await();
    line.await();
    double seconds = (System.nanoTime() - start) / 1e9;
    Thread.sleep(timer.settlingMs(pairs));
    Usage used = Usage.now().minus(before);
    double total = (double) count * producers;
    if (warmingUp) {
      timer.close();
      return;
    }
    print("rate", total / seconds);
    print("cpu", used.cpuNs() / total);
  }

  private static void fire(
      RealTimer.Maker maker, int timers, int leadMs, int spanMs, boolean warmingUp)
      throws Exception {
    RealTimer timer = maker.make();
    long[] deadlines = new long[timers];
    long[] firedAt = new long[timers];
    AtomicInteger fired = new AtomicInteger();
    SplittableRandom random = new SplittableRandom(42);
    long first = System.nanoTime() + leadMs * 1_000_000L;
    for (int i = 0; i < timers; i++) {
      int slot = i;
      long at = first + random.nextLong(spanMs * 1_000_000L);
      long delay = Math.max(1, (at - System.nanoTime()) / 1_000_000);
      Runnable task =
          () -> {
            firedAt[slot] = System.nanoTime();
            fired.incrementAndGet();
          };
      deadlines[slot] = System.nanoTime() + delay * 1_000_000;
      timer.schedule(delay, task);
    }
    if (System.nanoTime() >= first && !warmingUp) {
      System.out.print("scheduling took longer than the lead");
      System.out.flush();
      Runtime.getRuntime().halt(1);
    }
    Thread.sleep(Math.max(0, (first - System.nanoTime()) / 1_000_000));
    Usage before = Usage.now();
    Thread.sleep(spanMs);
    while (fired.get() < timers) Thread.sleep(5);
    Usage used = Usage.now().minus(before);
    if (warmingUp) {
      timer.close();
      return;
    }
    double took =
        Arrays.stream(firedAt).max().getAsLong() - Arrays.stream(deadlines).min().getAsLong();
    double[] late = new double[timers];
    for (int slot = 0; slot < timers; slot++) late[slot] = (firedAt[slot] - deadlines[slot]) / 1e3;
    Arrays.sort(late);
    print("rate", timers / (took / 1e9));
    print("cpu", used.cpuNs() / timers);
    print("cpu_ms", used.cpuNs() / 1e6);
    print("sleeps", used.sleeps());
    print("early", Arrays.stream(late).filter(each -> each < 0).count());
    print("min", late[0]);
    print("p50", late[(int) (0.50 * (timers - 1))]);
    print("p99", late[(int) (0.99 * (timers - 1))]);
    print("max", late[timers - 1]);
  }

  private static void idle(RealTimer.Maker maker, int timers, int spanMs) throws Exception {
    RealTimer timer = maker.make();
    SplittableRandom random = new SplittableRandom(1);
    for (int i = 0; i < timers; i++) timer.schedule(60 * far(random), NOTHING);
    Thread.sleep(200 + timer.settlingMs(timers));
    Usage.now(); // so that it is compiled before the measurement begins
    Usage before = Usage.now();
    Thread.sleep(spanMs);
    Usage used = Usage.now().minus(before);
    double seconds = spanMs / 1e3;
    print("cpu_ms", used.cpuNs() / 1e6 / seconds);
    print("sleeps", used.sleeps() / seconds);
  }

  private static long far(SplittableRandom random) {
    return FAR_MS + random.nextInt(FAR_MS);
  }

  private static void print(String figure, double value) {
    System.out.printf(Locale.ROOT, "%s %.3f%n", figure, value);
  }
}
