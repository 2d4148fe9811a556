# Tests the server through the whole interface of the Ruby client `beaneater`.
#
#     ruby beaneater_test.rb HOST PORT

require 'beaneater'
require 'minitest'

HOST, PORT = ARGV

class BeaneaterTest < Minitest::Test
  LATE = 0.5 # seconds; the allowed lateness, since other tests run on the same machine

  def setup
    @client = Beaneater.new("#{HOST}:#{PORT}")
    @tube = @client.tubes[name.tr('_', '-')]
    @client.tubes.watch!(@tube.name)
  end

  def teardown
    @client.close
  end

  def another_client
    client = Beaneater.new("#{HOST}:#{PORT}")
    client.tubes.watch!(@tube.name)
    yield client
  ensure
    client.close
  end

  # Runs the block, which must take `seconds` to `seconds` + LATE. Measures with two clocks, since
  # they differ while the wall clock is adjusted, and takes the longer time.
  def takes(seconds)
    wall, steady = Time.now, Process.clock_gettime(Process::CLOCK_MONOTONIC)
    result = yield
    elapsed = [Time.now - wall, Process.clock_gettime(Process::CLOCK_MONOTONIC) - steady].max
    assert_operator elapsed, :>=, seconds
    assert_operator elapsed, :<=, seconds + LATE
    result
  end

  def test_put_reserve_delete
    id = @tube.put('hello')[:id]
    job = @tube.reserve(0)
    assert_equal [id, 'hello', true], [job.id, job.body, job.reserved?]
    assert_equal 'DELETED', job.delete[:status]
    refute job.exists?
    assert_raises(Beaneater::NotFoundError) { job.delete }
    assert_nil @client.jobs.find(id)
  end

  def test_bodies_are_bytes
    body = (0..255).to_a.pack('C*') + "\r\nquit\r\n"
    @tube.put(body)
    assert_equal body, @tube.reserve(0).body.b
  end

  def test_the_most_urgent_goes_first
    jobs = [[5, 'late'], [0, 'urgent'], [5, 'later'], [1023, 'last']]
    jobs.each { |pri, body| @tube.put(body, pri: pri) }
    assert_equal 4, @tube.stats.current_jobs_urgent
    assert_equal %w[urgent late later last], Array.new(4) { @tube.reserve(0).body }
  end

  def test_a_job_too_big
    assert_raises(Beaneater::JobTooBigError) { @tube.put('z' * 65_536) }
    @tube.put('z' * 65_535)
    assert_equal 65_535, @tube.reserve(0).body.bytesize
  end

  def test_a_delay
    takes(1) do
      @tube.put('later', delay: 1)
      assert_equal 'later', @tube.peek(:delayed).body
      assert_nil @tube.peek(:ready)
      assert_equal 'later', @tube.reserve(10).body
    end
  end

  def test_a_time_out
    takes(0) { assert_raises(Beaneater::TimedOutError) { @tube.reserve(0) } }
    takes(1) { assert_raises(Beaneater::TimedOutError) { @tube.reserve(1) } }
  end

  def test_a_waiting_reserve_is_woken_by_a_put
    waiting = Thread.new { another_client { |client| client.tubes.reserve.body } }
    sleep 0.01 until @tube.stats.current_waiting == 1
    @tube.put('wake up')
    assert_equal 'wake up', waiting.value
  end

  def test_release
    @tube.put('again', pri: 9, ttr: 77)
    job = @tube.reserve(0)
    job.release(pri: 3, delay: 0)
    again = @tube.reserve(0)
    stats = again.stats
    assert_equal [job.id, 3, 1, 2, 77],
                 [again.id, again.pri, stats.releases, stats.reserves, again.ttr]
    takes(1) do
      again.release(delay: 1)
      assert_equal 'delayed', again.stats.state
      assert_equal job.id, @tube.reserve(10).id
    end
  end

  def test_bury_and_kick
    ids = %w[a b c].map { |body| @tube.put(body)[:id] }
    3.times { @tube.reserve(0).bury(pri: 5) }
    assert_equal [3, 'a'], [@tube.stats.current_jobs_buried, @tube.peek(:buried).body]
    assert_equal '2', @tube.kick(2)[:id]
    assert_equal 'KICKED', @client.jobs.find(ids[2]).kick[:status]
    assert_equal %w[a b c], Array.new(3) { @tube.reserve(0).body }
    stats = @client.jobs.find(ids[0]).stats
    assert_equal [5, 1, 1], %i[pri buries kicks].map { |field| stats[field] }
  end

  def test_kick_takes_delayed_jobs_when_none_is_buried
    @tube.put('far', delay: 1000)
    assert_equal '1', @tube.kick(10)[:id]
    assert_equal 'far', @tube.reserve(0).body
  end

  def test_touch_and_ttr
    @tube.put('slow', ttr: 1)
    job = @tube.reserve(0)
    sleep 0.6
    takes(1) do
      job.touch
      # Carillon makes the job ready when its ttr runs out. beanstalkd sometimes waits for the next
      # command of the connection that held it, hence `used` below.
      another_client do |client|
        taken = Thread.new { client.tubes.reserve(10) }
        sleep 1.05
        @client.tubes.used
        assert_equal job.id, taken.value.id
        assert_equal 1, taken.value.stats.timeouts
      end
    end
    # The other client has closed and given the job back, so nobody holds it.
    assert_raises(Beaneater::NotFoundError) { @client.connection.transmit("touch #{job.id}") }
  end

  def test_deadline_soon
    @tube.put('short', ttr: 1)
    @tube.reserve(0)
    assert_raises(Beaneater::DeadlineSoonError) { @tube.reserve(5) }
  end

  def test_a_closed_connection_gives_its_jobs_back
    @tube.put('back')
    another_client { |client| assert_equal 'back', client.tubes.reserve(0).body }
    assert_equal 'back', @tube.reserve(5).body
  end

  def test_pause
    @tube.put('wait')
    takes(1) do
      assert_equal 'PAUSED', @tube.pause(1)[:status]
      assert_equal 1, @tube.stats.pause
      assert_equal 'wait', @tube.reserve(10).body
    end
    assert_equal [0, 1], [@tube.stats.pause, @tube.stats.cmd_pause_tube]
  end

  def test_tubes
    other = @client.tubes['beaneater-other']
    @client.tubes.watch(other.name)
    assert_equal [@tube.name, other.name].sort, @client.tubes.watched.map(&:name).sort
    assert_includes @client.tubes.all.map(&:name), other.name
    other.put('from the other')
    assert_equal other.name, @client.tubes.used.name
    job = @client.tubes.reserve(0)
    assert_equal ['from the other', other.name], [job.body, job.tube]
    @client.tubes.ignore(other.name)
    assert_raises(Beaneater::NotIgnoredError) { @client.tubes.ignore(@tube.name) }
    assert_raises(Beaneater::InvalidTubeName) { @client.tubes.watch('-bad') }
    assert_raises(Beaneater::InvalidTubeName) { @client.tubes.use('b@d') }
    assert_raises(Beaneater::NotFoundError) { @client.tubes['beaneater-never'].stats }
  end

  def test_clear
    @tube.put('ready')
    @tube.put('delayed', delay: 1000)
    @tube.put('buried', pri: 0)
    @tube.reserve(0).bury
    @tube.clear
    stats = @tube.stats
    assert_equal [0, 0, 0],
                 [stats.current_jobs_ready, stats.current_jobs_delayed, stats.current_jobs_buried]
  end

  def test_stats
    before = @client.stats['cmd_put']
    @tube.put('counted')
    assert_equal before + 1, @client.stats['cmd_put']
    assert_equal false, @client.stats['draining']
    assert_kind_of String, @client.stats['version']
    assert_equal 1, @tube.stats.total_jobs
    assert_equal @tube.name, @tube.stats.name
  end

  def test_the_processing_loop
    %w[good retried poison].each { |body| @tube.put(body, pri: 0) }
    log = []
    @client.jobs.register(@tube.name, retry_on: [KeyError], max_retries: 2) do |job|
      log << job.body
      raise KeyError if job.body == 'retried'
      raise 'poison' if job.body == 'poison'
    end
    @client.jobs.register("#{@tube.name}-end") { |_| raise Beaneater::AbortProcessingError }
    ending = Beaneater.new("#{HOST}:#{PORT}")
    ending.tubes["#{@tube.name}-end"].put('stop', pri: 100, delay: 1)
    @client.jobs.process!(release_delay: 0, reserve_timeout: 5)
    ending.close
    assert_equal %w[good poison retried retried retried], log.sort
    assert_equal [2, 'retried'], [@tube.stats.current_jobs_buried, @tube.peek(:buried).body.to_s]
  end
end

exit Minitest.run([])
