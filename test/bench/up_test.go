package bench_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// startup is what `credence up` writes of each start.
type startup struct {
	Kind    string
	Seconds float64
	Parts   []struct {
		Name    string
		Seconds float64
	}
}

type endpoints struct {
	Supervisor process
	Components []process
}

type process struct {
	Name string
	PID  int
}

// BenchmarkWarmUp measures `credence up --detach` on a folder that has state: seconds until a token has been issued and
// verified, seconds of each part (parts overlap), and the resident memory of each process in MB.
func BenchmarkWarmUp(b *testing.B) {
	dir := b.TempDir()
	b.Cleanup(func() { credence(b, "down", "--dir", dir) })
	credence(b, "up", "--dir", dir, "--port", freeBase(b), "--detach")
	sums := map[string]float64{}
	for b.Loop() {
		b.StopTimer()
		credence(b, "down", "--dir", dir)
		b.StartTimer()
		credence(b, "up", "--dir", dir, "--detach")
		var s startup
		read(b, filepath.Join(dir, "startup.json"), &s)
		if s.Kind != "warm" {
			b.Fatalf("a %s start, want a warm one", s.Kind)
		}
		sums["ready-s"] += s.Seconds
		for _, part := range s.Parts {
			sums[strings.ReplaceAll(part.Name, " ", "-")+"-s"] += part.Seconds
		}
	}
	for unit, sum := range sums {
		b.ReportMetric(sum/float64(b.N), unit)
	}
	var e endpoints
	read(b, filepath.Join(dir, "endpoints.json"), &e)
	for _, p := range append(e.Components, e.Supervisor) {
		b.ReportMetric(residentMB(b, p.PID), p.Name+"-MB")
		for _, child := range children(b, p.PID) {
			if p.Name == "devcluster" {
				b.ReportMetric(residentMB(b, child), p.Name+"-child-MB")
			}
		}
	}
}

func credence(b *testing.B, args ...string) {
	b.Helper()
	bin := os.Getenv("CREDENCE_BIN")
	if bin == "" {
		bin = filepath.Join("..", "..", "bin")
	}
	if out, err := exec.Command(filepath.Join(bin, "credence"), args...).CombinedOutput(); err != nil {
		b.Fatalf("credence %v: %v\n%s", args, err, out)
	}
}

func read(b *testing.B, path string, into any) {
	b.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	if err := json.Unmarshal(content, into); err != nil {
		b.Fatal(err)
	}
}

func residentMB(b *testing.B, pid int) float64 {
	b.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range bytes.Lines(content) {
		if fields := strings.Fields(string(line)); len(fields) == 3 && fields[0] == "VmRSS:" {
			kilobytes, err := strconv.Atoi(fields[1])
			if err != nil {
				b.Fatal(err)
			}
			return float64(kilobytes) / 1024
		}
	}
	b.Fatalf("process %d has no resident memory", pid)
	return 0
}

func children(b *testing.B, pid int) []int {
	b.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		b.Fatal(err)
	}
	var list []int
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(content)) {
			if child, err := strconv.Atoi(field); err == nil {
				list = append(list, child)
			}
		}
	}
	return list
}

// freeBase returns the first of ten consecutive free ports.
func freeBase(b *testing.B) string {
	b.Helper()
	for base := 28000; base < 31000; base += 10 {
		free := true
		for port := base; port < base+10 && free; port++ {
			listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if free = err == nil; free {
				_ = listener.Close()
			}
		}
		if free {
			return strconv.Itoa(base)
		}
	}
	b.Fatal("no ten consecutive free ports")
	return ""
}
