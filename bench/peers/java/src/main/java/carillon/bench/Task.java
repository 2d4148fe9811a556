package carillon.bench;

/**
 * The task of a timer, with a payload of 16 bytes. It counts itself when it fires. Only one thread,
 * that of the timer, runs tasks.
 */
final class Task implements Runnable {
  static volatile int fired;

  long first;
  long second;

  @Override
  @SuppressWarnings("NonAtomicOperationOnVolatileField") // one thread at a time writes it
  public void run() {
    first++;
    fired++;
  }
}
