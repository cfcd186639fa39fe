//go:build linux

package containerd

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestFindNamesAllThatIsMissing(t *testing.T) {
	for _, test := range []struct {
		missing []string
		want    string
	}{
		{[]string{"runc"}, "a node needs runc, not found in PATH: run apt-get install -y --no-install-recommends runc"},
		{
			[]string{"containerd", "ctr", "containerd-shim-runc-v2", "runc", "busybox", "nft", "loopback", "ptp", "host-local"},
			"a node needs containerd, ctr, containerd-shim-runc-v2, runc, busybox, nft, loopback, ptp, host-local, not found in PATH: run apt-get install -y --no-install-recommends containerd runc busybox-static nftables containernetworking-plugins",
		},
	} {
		_, err := findWith(func(name string) (string, error) {
			if slices.Contains(test.missing, name) {
				return "", errors.New("not found")
			}
			return "/bin/" + name, nil
		})
		if err == nil || err.Error() != test.want {
			t.Errorf("without %v: %v\nwant %s", test.missing, err, test.want)
		}
	}
	// A busybox that needs libraries cannot be an image.
	if _, err := findWith(func(string) (string, error) { return "/nonexistent", nil }); err == nil || !strings.Contains(err.Error(), "static busybox") {
		t.Errorf("without a program for pauses: %v", err)
	}
}
