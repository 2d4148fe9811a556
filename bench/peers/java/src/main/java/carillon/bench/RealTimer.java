package carillon.bench;

/** A timer with its own clock and thread. It can be measured in real time only. */
interface RealTimer extends AutoCloseable {
  /** Returns a handle for cancel(). */
  Object schedule(long delayMs, Runnable task) throws Exception;

  void cancel(Object handle) throws Exception;

  /** How long it may take, in ms, until all threads have finished the work of this many calls. */
  default long settlingMs(int calls) {
    return 0;
  }

  @Override
  void close() throws Exception;

  interface Maker {
    RealTimer make() throws Exception;
  }
}
