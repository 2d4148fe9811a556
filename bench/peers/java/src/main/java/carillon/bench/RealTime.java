package carillon.bench;

/**
 * The workloads that are possible in real time. W1 and W2 count the CPU time of this thread. Their
 * delays are one hour longer than the workloads say, so that nothing fires. The work that the
 * timer's own thread does for them is not counted. W3r, instead of W3, is the CPU time of the whole
 * process per timer, while N timers fire within 3 s.
 */
final class RealTime {
  private static final long HOUR_MS = 3_600_000;

  // The fewest timers for which W3r and W6 are measured: the process's clock has steps of 10 ms.
  private static final int SMALLEST_COUNTED = 100_000;

  private final Inputs inputs;
  private final Task[] tasks;
  private final Object[] handles;

  RealTime(Inputs inputs) {
    this.inputs = inputs;
    tasks = new Task[inputs.size()];
    for (int i = 0; i < tasks.length; i++) tasks[i] = new Task();
    handles = new Object[inputs.size()];
  }

  void measure(String system, RealTimer.Maker maker, int runs) throws Exception {
    int n = inputs.size();
    double[] schedule = new double[runs];
    double[] cancel = new double[runs];
    for (int warmUp = 0; warmUp < 2; warmUp++) {
      scheduleAndCancel(maker, new double[1], new double[1], 0);
    }
    for (int run = 0; run < runs; run++) scheduleAndCancel(maker, schedule, cancel, run);
    Measure.print(n, "W1", system, schedule);
    Measure.print(n, "W2", system, cancel);
    if (n < SMALLEST_COUNTED) return;
    // Garbage of earlier timers that is collected meanwhile makes the difference too small. Nothing
    // makes it too large, so the largest of three is taken.
    Measure.print(n, "W6", system, Math.max(bytes(maker), Math.max(bytes(maker), bytes(maker))));
    double[] fire = new double[Math.min(2, runs)];
    for (int run = 0; run < fire.length; run++) fire[run] = fireAll(maker);
    Measure.print(n, "W3r", system, fire);
  }

  /** With few timers a run makes several passes, so that it is long enough to be measured. */
  private void scheduleAndCancel(RealTimer.Maker maker, double[] schedule, double[] cancel, int run)
      throws Exception {
    int passes = Math.max(1, 200_000 / inputs.size());
    long scheduling = 0;
    long cancelling = 0;
    for (int pass = 0; pass < passes; pass++) {
      try (RealTimer timer = maker.make()) {
        long start = Measure.threadTime();
        for (int i = 0; i < inputs.size(); i++) {
          handles[i] = timer.schedule(HOUR_MS + inputs.delays()[i], tasks[i]);
        }
        long scheduled = Measure.threadTime();
        for (int i : inputs.randomOrder()) timer.cancel(handles[i]);
        scheduling += scheduled - start;
        cancelling += Measure.threadTime() - scheduled;
      }
    }
    schedule[run] = (double) scheduling / passes / inputs.size();
    cancel[run] = (double) cancelling / passes / inputs.size();
  }

  private double fireAll(RealTimer.Maker maker) throws Exception {
    int n = inputs.size();
    Task.fired = 0;
    try (RealTimer timer = maker.make()) {
      for (int i = 0; i < n; i++) timer.schedule(2_000 + inputs.delays()[i] / 20, tasks[i]);
      long start = Measure.processTime();
      while (Task.fired < n) Thread.sleep(20);
      return (double) (Measure.processTime() - start) / n;
    }
  }

  private double bytes(RealTimer.Maker maker) throws Exception {
    java.util.Arrays.fill(handles, null);
    Thread.sleep(200); // meanwhile the threads of the last timers end
    long before = Measure.heap();
    try (RealTimer timer = maker.make()) {
      for (int i = 0; i < inputs.size(); i++) {
        timer.schedule(HOUR_MS + inputs.delays()[i], tasks[i]);
      }
      // Meanwhile Netty's worker takes over new timers, 100 000 per tick.
      Thread.sleep(100 + inputs.size() / 100);
      return (double) (Measure.heap() - before) / inputs.size();
    }
  }
}
