package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	only := flag.String("only", "", "run the parts alone whose name contains this text")
	slowest := flag.Int("slowest", 0, "after the run, list this many tests that took longest")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: parts [flags] TIER, one of %s\n", strings.Join(append(slices.Sorted(maps.Keys(tiers)), "test-versions"), ", "))
		flag.PrintDefaults()
	}
	flag.Parse()
	list := slices.DeleteFunc(tier(flag.Arg(0), versions()), func(p part) bool { return !strings.Contains(p.name, *only) })
	if flag.NArg() != 1 || len(list) == 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	passed, err := run(ctx, list, *slowest)
	if err != nil {
		fmt.Fprintln(os.Stderr, "parts:", err)
	}
	if !passed || err != nil {
		os.Exit(1)
	}
}

// tier returns the parts of a tier. Those on other versions of Kubernetes are known by versions.env.
func tier(name string, versions map[string]string) []part {
	oldest := []string{versions["KUBERNETES_OLDEST"]}
	switch name {
	case "test-all":
		return append(slices.Clone(tiers[name]), onKubernetes(0, oldest)...)
	case "test-versions":
		build := tiers["test-all"][slices.IndexFunc(tiers["test-all"], func(p part) bool { return p.name == buildHelm })]
		all := append(oldest, strings.Split(versions["KUBERNETES_BETWEEN"], ",")...)
		list := append([]part{build}, onKubernetes(build.lane, all,
			part{name: "storage", command: "-timeout 45m ./test/storage/..."},
			part{name: "storage in the cluster", command: "-run '^TestPlaneStorageInTheCluster$' ./test/e2e"},
			part{name: "chart", dir: "test/install", command: "-timeout 45m -run '^Test(ChartInstallsTheManifests|LifeOfAnInstallation|InANewCluster)$' ."},
		)...)
		return append(list, part{name: "a cluster that is upgraded", tests: true, lane: build.lane, command: "-timeout 30m -run '^TestVersionsUpgrade$' ./test/e2e"})
	}
	return slices.Clone(tiers[name])
}

// versions reads versions.env.
func versions() map[string]string {
	content, _ := os.ReadFile("versions.env") // a part without a version fails
	all := map[string]string{}
	for line := range strings.Lines(string(content)) {
		name, version, _ := strings.Cut(strings.TrimSpace(line), "=")
		all[name] = version
	}
	return all
}

// run runs the parts, prints their lines and reports whether all passed.
func run(ctx context.Context, list []part, slowest int) (passed bool, err error) {
	top, err := os.Getwd()
	if err != nil {
		return false, err
	}
	scratch, err := newScratch(filepath.Join(top, "bin"))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, scratch.clean()) }()
	if err := os.MkdirAll(filepath.Join(top, "bin", "log"), 0o755); err != nil {
		return false, err
	}
	r := &runner{top: top, scratch: scratch, out: os.Stdout, now: time.Now}
	results := r.all(ctx, list)
	if ctx.Err() != nil {
		return false, errors.New("interrupted: what ran is stopped and removed")
	}
	return report(os.Stdout, results, slowest), nil
}
