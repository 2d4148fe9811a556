package carillon.bench;

import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import java.util.Timer;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.server.util.timer.TimerTask;

/** The timers of Netty, Kafka and the JDK, each constructed as its users do. */
final class RealTimers {
  private RealTimers() {}

  static final class Netty implements RealTimer {
    private final HashedWheelTimer timer;
    private final long tickMs;

    Netty(long tickMs) {
      this.tickMs = tickMs;
      timer = new HashedWheelTimer(tickMs, TimeUnit.MILLISECONDS);
      timer.start();
    }

    @Override
    public Object schedule(long delayMs, Runnable task) {
      return timer.newTimeout(timeout -> task.run(), delayMs, TimeUnit.MILLISECONDS);
    }

    @Override
    public void cancel(Object handle) {
      ((Timeout) handle).cancel();
    }

    /** At each tick, Netty's worker puts up to 100 000 new timers into the wheel. */
    @Override
    public long settlingMs(int calls) {
      return Math.max(200, (calls / 100_000 + 3) * tickMs);
    }

    @Override
    public void close() {
      timer.stop();
    }
  }

  /**
   * Driven by a thread, as in Kafka's brokers: the thread waits for the next bucket, 200 ms at
   * most.
   */
  static final class Kafka implements RealTimer {
    private final SystemTimer timer =
        new SystemTimer("bench", 1, 20, System.nanoTime() / 1_000_000);
    private volatile boolean closing;
    private final Thread driver =
        new Thread(
            () -> {
              try {
                while (!closing) timer.advanceClock(200);
              } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
              }
            });

    Kafka() {
      driver.start();
    }

    private static final class Entry extends TimerTask {
      private final Runnable task;

      Entry(long delayMs, Runnable task) {
        super(delayMs);
        this.task = task;
      }

      @Override
      public void run() {
        task.run();
      }
    }

    @Override
    public Object schedule(long delayMs, Runnable task) {
      Entry entry = new Entry(delayMs, task);
      timer.add(entry);
      return entry;
    }

    @Override
    public void cancel(Object handle) {
      ((TimerTask) handle).cancel();
    }

    @Override
    public void close() throws Exception {
      closing = true;
      driver.join();
      timer.close();
    }
  }

  static final class Executor implements RealTimer {
    private final ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(1);

    Executor() {
      executor.setRemoveOnCancelPolicy(true);
      executor.prestartAllCoreThreads();
    }

    @Override
    public Object schedule(long delayMs, Runnable task) {
      return executor.schedule(task, delayMs, TimeUnit.MILLISECONDS);
    }

    @Override
    public void cancel(Object handle) {
      ((Future<?>) handle).cancel(false);
    }

    @Override
    public void close() {
      executor.shutdownNow();
    }
  }

  /** A cancelled timer stays in the heap until its time comes. */
  static final class JavaUtil implements RealTimer {
    private final Timer timer = new Timer(true);

    @Override
    public Object schedule(long delayMs, Runnable task) {
      java.util.TimerTask entry =
          new java.util.TimerTask() {
            @Override
            public void run() {
              task.run();
            }
          };
      timer.schedule(entry, delayMs);
      return entry;
    }

    @Override
    public void cancel(Object handle) {
      ((java.util.TimerTask) handle).cancel();
    }

    @Override
    public void close() {
      timer.cancel();
    }
  }

  /** Forgets every timer: shows the work of the JVM itself while nothing happens. */
  static final class None implements RealTimer {
    @Override
    public Object schedule(long delayMs, Runnable task) {
      return task;
    }

    @Override
    public void cancel(Object handle) {}

    @Override
    public void close() {}
  }
}
