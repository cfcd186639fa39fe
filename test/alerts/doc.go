// Package alerts tests the alerts on the metrics of Credence with the query engine of Prometheus. In go the rules of
// deploy/monitoring, series as a Prometheus would have scraped them, the Go source and docs/reference/alerts.md; nothing comes
// out but test failures. It is a module of its own, so that the programs do not depend on Prometheus, and it takes of
// Prometheus what evaluates a rule: promtool, which does the same, needs the clients of every cloud.
package alerts
