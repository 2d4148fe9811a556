package carillon.bench;

/** A timer that has a clock and a thread of its own, and so can be measured in real time only. */
interface RealTimer extends AutoCloseable {
  /** The handle by which it can be cancelled. */
  Object schedule(long delayMs, Runnable task) throws Exception;

  void cancel(Object handle) throws Exception;

  /** How long it may take until so many calls have been dealt with by all threads. */
  default long settlingMs(int calls) {
    return 0;
  }

  @Override
  void close() throws Exception;

  interface Maker {
    RealTimer make() throws Exception;
  }
}
