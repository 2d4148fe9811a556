package carillon.bench;

/** What waits: a payload of 16 bytes. It counts itself when it fires, on whichever single thread its timer has. */
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
