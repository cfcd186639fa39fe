package main

import "testing"

func TestSum(t *testing.T) {
	const metrics = `# TYPE requests_total counter
requests_total{operation="get",resource="a"} 3
requests_total{operation="get",resource="b"} 4
requests_total{operation="put",resource="a"} 1.5e+01
requests_total_more{operation="get",resource="a"} 100
plain 7
`
	for want, labels := range map[float64][]string{22: nil, 18: {`resource="a"`}, 3: {`resource="a"`, `operation="get"`}, 0: {`resource="c"`}} {
		if got := sum([]byte(metrics), "requests_total", labels...); got != want {
			t.Errorf("sum of %v is %v, want %v", labels, got, want)
		}
	}
	if got := sum([]byte(metrics), "plain"); got != 7 {
		t.Errorf("sum of a metric without labels is %v, want 7", got)
	}
}
