package carillon.bench;

import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.IntBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;

/**
 * The inputs of all systems: the delays and orders that {@code carillon_bench_wheel --inputs}
 * wrote.
 */
record Inputs(int[] delays, long[] wideDelays, int[] randomOrder) {
  static Inputs read(Path file) throws IOException {
    try (FileChannel channel = FileChannel.open(file)) {
      MappedByteBuffer bytes = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
      IntBuffer words = bytes.order(ByteOrder.nativeOrder()).asIntBuffer();
      int n = words.get();
      if (n <= 0 || words.remaining() != 3L * n) {
        throw new IOException(file + ": not what carillon_bench_wheel --inputs writes");
      }
      int[] delays = new int[n];
      words.get(delays);
      long[] wide = new long[n];
      for (int i = 0; i < n; i++) wide[i] = Integer.toUnsignedLong(words.get());
      int[] order = new int[n];
      words.get(order);
      return new Inputs(delays, wide, order);
    }
  }

  int size() {
    return delays.length;
  }
}
