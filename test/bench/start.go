package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// warmStarts is how often a plane that has state is started again; the medians are shown.
const warmStarts = 3

// startPlane uses the plane that runs already, or starts one and measures its starts: seconds until a token has been issued and
// verified, beside what the control plane needs of it, and the memory of each process before it has had any load.
func startPlane(ctx context.Context, s settings, t *table) (plane, func(), error) {
	if s.dir != "" {
		p, err := readPlane(s.dir)
		return p, func() {}, err
	}
	dir, err := os.MkdirTemp("", "credence-bench-")
	if err != nil {
		return plane{}, nil, err
	}
	port, err := freePorts(11)
	if err != nil {
		return plane{}, nil, err
	}
	stop := func() {
		if err := s.credence(context.WithoutCancel(ctx), "down", "--dir", dir); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		_ = os.RemoveAll(dir)
	}
	p, err := measureStarts(ctx, s, dir, port, t)
	if err != nil {
		stop()
		return plane{}, nil, fmt.Errorf("measure start: %w", err)
	}
	return p, stop, nil
}

func measureStarts(ctx context.Context, s settings, dir, port string, t *table) (plane, error) {
	if err := s.credence(ctx, "up", "--dir", dir, "--port", port, "--detach"); err != nil {
		return plane{}, err
	}
	if s.only != "" && s.only != "start" {
		return readPlane(dir)
	}
	var cold startup
	if err := readJSON(filepath.Join(dir, "startup.json"), &cold); err != nil {
		return plane{}, err
	}
	startRows(t, []startup{cold})
	var warm []startup
	for range warmStarts {
		if err := s.credence(ctx, "down", "--dir", dir); err != nil {
			return plane{}, err
		}
		if err := s.credence(ctx, "up", "--dir", dir, "--detach"); err != nil {
			return plane{}, err
		}
		var again startup
		if err := readJSON(filepath.Join(dir, "startup.json"), &again); err != nil {
			return plane{}, err
		}
		warm = append(warm, again)
	}
	startRows(t, warm)
	p, err := readPlane(dir)
	if err != nil {
		return plane{}, err
	}
	return p, memoryRows(t, p)
}

// startRows shows the medians of starts of one kind: of the whole beside the control plane's part, and of each part.
func startRows(t *table, starts []startup) {
	kind := starts[0].Kind
	part := func(name string) float64 {
		return median(starts, func(s startup) float64 {
			for _, p := range s.Parts {
				if p.Name == name {
					return p.Seconds
				}
			}
			return 0
		})
	}
	ground := part("devcluster")
	ready := median(starts, func(s startup) float64 { return s.Seconds })
	t.add(row{what: kind + " start, ready", unit: "s", ours: ready, peer: "control plane alone", theirs: ground})
	for _, p := range starts[0].Parts {
		if p.Name != "devcluster" {
			t.add(row{what: kind + " start, " + p.Name, unit: "s", ours: part(p.Name), peer: "control plane alone", theirs: ground})
		}
	}
}

// memoryRows shows the resident memory of each process beside that of kube-apiserver with its etcd.
func memoryRows(t *table, p plane) error {
	pid, err := p.pid("devcluster")
	if err != nil {
		return err
	}
	ground, err := residentMB(pid)
	if err != nil {
		return err
	}
	processes := append([]process{p.Supervisor}, p.Components...)
	children, err := childrenOf(pid)
	if err != nil {
		return err
	}
	for _, child := range children {
		processes = append(processes, process{Name: "kube-controller-manager", PID: child})
	}
	for _, process := range processes {
		if process.PID == pid {
			continue
		}
		memory, err := residentMB(process.PID)
		if err != nil {
			return err
		}
		t.add(row{what: "memory of " + process.Name + ", started", unit: "MB", ours: memory, peer: "kube-apiserver and etcd", theirs: ground})
	}
	return nil
}
