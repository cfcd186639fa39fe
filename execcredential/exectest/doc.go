// Package exectest is a fake provider of exec credentials for tests: a real executable, without one having to be built. The test
// binary runs itself, and the process that comes of it gets its answer from the test.
//
// In goes a function of the test that returns for each run what the program writes and how it ends; out come a Config to use in place of
// a real one, and what the program was passed. Beside it are a [Clock] that tests move by hand, and an [Authority] for certificates. It
// reaches nothing beyond loopback, and leaves no process when the test ends.
//
//	func TestMain(m *testing.M) { exectest.Main(m) }
//
//	func TestClient(t *testing.T) {
//		provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
//			return exectest.Token("secret", time.Time{})
//		})
//		source, err := pool.Source(provider.Config())
//		…
//	}
package exectest
