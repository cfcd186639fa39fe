package provider

import (
	"bytes"
	"regexp"
	"testing"
	"time"
)

func TestVersion(t *testing.T) {
	t.Setenv("PATH", "") // no program to become
	var out, errOut bytes.Buffer
	code := Run([]string{"--version"}, &out, &errOut, time.Now)
	if code != 0 || errOut.Len() != 0 || !regexp.MustCompile(`^credence-credential \S+ \(.*go1\..*\)\n$`).MatchString(out.String()) {
		t.Errorf("exit code %d, %q, %q", code, out.String(), errOut.String())
	}
}
