package carillon.bench;

import java.util.concurrent.DelayQueue;
import java.util.concurrent.Delayed;
import java.util.concurrent.TimeUnit;

/**
 * java.util.concurrent.DelayQueue on a virtual clock. This works because the queue asks its
 * elements how long they still have to wait.
 */
final class VirtualDelayQueue {
  private static final int LARGEST_CANCELLED = 10_000; // remove() looks at all elements

  private final Inputs inputs;
  private long now;

  VirtualDelayQueue(Inputs inputs) {
    this.inputs = inputs;
  }

  private final class Entry implements Delayed {
    long first;
    long second;
    private final long expiry;

    Entry(long expiry) {
      this.expiry = expiry;
    }

    @Override
    public long getDelay(TimeUnit unit) {
      return unit.convert(expiry - now, TimeUnit.MILLISECONDS);
    }

    @Override
    public int compareTo(Delayed other) {
      return Long.compare(expiry, ((Entry) other).expiry);
    }
  }

  void measure(int runs) {
    int n = inputs.size();
    String system = "java DelayQueue";
    for (int warmUp = 0; warmUp < Math.max(1, 300_000 / n); warmUp++) fireAll();
    double[] schedule = new double[runs];
    double[] fire = new double[runs];
    double[] wide = new double[runs];
    double[] cancel = new double[n <= LARGEST_CANCELLED ? 1 : 0];
    for (int run = 0; run < runs; run++) {
      double[] both = fireAll();
      schedule[run] = both[0];
      fire[run] = both[1];
      wide[run] = wideRange();
    }
    for (int run = 0; run < cancel.length; run++) cancel[run] = cancelAll();
    Measure.print(n, "W1", system, schedule);
    if (cancel.length > 0) Measure.print(n, "W2", system, cancel);
    Measure.print(n, "W3", system, fire);
    Measure.print(n, "W5", system, wide);
    Measure.print(n, "W6", system, bytes());
  }

  private DelayQueue<Entry> scheduled() {
    now = 0;
    DelayQueue<Entry> queue = new DelayQueue<>();
    for (int delay : inputs.delays()) queue.add(new Entry(delay));
    return queue;
  }

  private double[] fireAll() {
    long start = Measure.threadTime();
    DelayQueue<Entry> queue = scheduled();
    long scheduled = Measure.threadTime();
    int fired = 0;
    while (fired < inputs.size()) {
      ++now;
      for (Entry entry; (entry = queue.poll()) != null; fired++) entry.first++;
    }
    long ended = Measure.threadTime();
    return new double[] {
      (double) (scheduled - start) / inputs.size(), (double) (ended - scheduled) / inputs.size()
    };
  }

  private double cancelAll() {
    now = 0;
    DelayQueue<Entry> queue = new DelayQueue<>();
    Entry[] entries = new Entry[inputs.size()];
    for (int i = 0; i < entries.length; i++) queue.add(entries[i] = new Entry(inputs.delays()[i]));
    long start = Measure.threadTime();
    for (int i : inputs.randomOrder()) queue.remove(entries[i]);
    return (double) (Measure.threadTime() - start) / inputs.size();
  }

  private double wideRange() {
    now = 0;
    long start = Measure.threadTime();
    DelayQueue<Entry> queue = new DelayQueue<>();
    for (long delay : inputs.wideDelays()) queue.add(new Entry(delay));
    int fired = 0;
    while (fired < inputs.size()) {
      now = queue.peek().expiry;
      for (Entry entry; (entry = queue.poll()) != null; fired++) entry.first++;
    }
    return (double) (Measure.threadTime() - start) / inputs.size();
  }

  private double bytes() {
    long before = Measure.heap();
    DelayQueue<Entry> queue = scheduled();
    double bytes = (double) (Measure.heap() - before) / queue.size();
    return bytes - 16; // the payload
  }
}
