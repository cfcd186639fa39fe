package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/test/testkit"
)

func put(t testing.TB, path string, data []byte) {
	t.Helper()
	testkit.Must(t, os.WriteFile(path, data, 0o600))
}

func putDocuments(t testing.TB, folder string, documents discovery.Documents) {
	t.Helper()
	put(t, filepath.Join(folder, discovery.ConfigurationKey), documents.Configuration())
	put(t, filepath.Join(folder, discovery.JWKSKey), documents.JWKS())
}

func must(t testing.TB, err error) {
	t.Helper()
	testkit.Must(t, err)
}

// volume writes files the way the kubelet writes a ConfigMap volume: into a new folder that one rename makes current.
type volume struct {
	path    string
	version int
}

func (v *volume) update(t testing.TB, files map[string][]byte) {
	t.Helper()
	old, next := v.target(), fmt.Sprintf("..version_%d", v.version)
	v.version++
	must(t, os.MkdirAll(filepath.Join(v.path, next), 0o700))
	for name, data := range files {
		put(t, filepath.Join(v.path, next, name), data)
	}
	temporary := filepath.Join(v.path, "..data_tmp")
	must(t, os.Symlink(next, temporary))
	must(t, os.Rename(temporary, filepath.Join(v.path, "..data")))
	for name := range files {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(v.path, name)); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	if old != "" {
		must(t, os.RemoveAll(filepath.Join(v.path, old)))
	}
}

func (v *volume) target() string {
	target, err := os.Readlink(filepath.Join(v.path, "..data"))
	if err != nil {
		return ""
	}
	return target
}

func documentFiles(documents discovery.Documents) map[string][]byte {
	return map[string][]byte{discovery.ConfigurationKey: documents.Configuration(), discovery.JWKSKey: documents.JWKS()}
}

// follow runs a directory source that looks at its files all the time.
func follow(t testing.TB, path string) *published {
	t.Helper()
	published := newPublished()
	directory := Directory{Path: path, Interval: time.Millisecond, Log: silent()}
	start(t, func(ctx context.Context) error { return directory.Run(ctx, published) })
	return published
}

func TestDirectoryFollowsFiles(t *testing.T) {
	folder := t.TempDir()
	first := newDocuments(t)
	putDocuments(t, folder, first)
	published := follow(t, folder)
	testkit.Eventually(t, "the first documents are served", func() bool { return published.serves(first) })
	for range 5 {
		next := newDocuments(t)
		putDocuments(t, folder, next)
		testkit.Eventually(t, "documents written in place are served", func() bool { return published.serves(next) })
	}
	for range 5 {
		next := newDocuments(t)
		put(t, filepath.Join(folder, "new"), next.JWKS())
		must(t, os.Rename(filepath.Join(folder, "new"), filepath.Join(folder, discovery.JWKSKey)))
		testkit.Eventually(t, "a renamed key set is served", func() bool { return published.serves(next) })
	}
}

func TestDirectoryFollowsAConfigMapVolume(t *testing.T) {
	volume := &volume{path: t.TempDir()}
	published := follow(t, volume.path)
	for i := range 30 {
		next := newDocuments(t)
		volume.update(t, documentFiles(next))
		testkit.Eventually(t, fmt.Sprintf("version %d is served", i), func() bool { return published.serves(next) })
	}
	if _, refusals, _ := published.counts(); refusals != 0 {
		t.Errorf("%d versions were refused: files of two versions were read together", refusals)
	}
}

func TestDirectoryFollowsALinkToAFolder(t *testing.T) {
	root := t.TempDir()
	link := filepath.Join(root, "current")
	published := follow(t, link)
	for i := range 10 {
		next := newDocuments(t)
		folder := filepath.Join(root, fmt.Sprintf("version-%d", i))
		must(t, os.Mkdir(folder, 0o700))
		putDocuments(t, folder, next)
		must(t, os.Symlink(folder, link+".new"))
		must(t, os.Rename(link+".new", link))
		testkit.Eventually(t, fmt.Sprintf("version %d is served", i), func() bool { return published.serves(next) })
	}
}

func TestDirectoryMayComeAndGo(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "deep", "down", "documents")
	published := follow(t, folder)
	testkit.Eventually(t, "the missing folder is reported", func() bool { _, _, unreadable := published.counts(); return unreadable == 1 })
	if published.Loaded() {
		t.Error("loaded from a folder that is missing")
	}
	for i := range 3 {
		must(t, os.MkdirAll(folder, 0o700))
		next := newDocuments(t)
		putDocuments(t, folder, next)
		testkit.Eventually(t, fmt.Sprintf("documents are served after creation %d", i), func() bool { return published.serves(next) })
		_, _, before := published.counts()
		must(t, os.RemoveAll(filepath.Dir(filepath.Dir(folder))))
		testkit.Eventually(t, "the removal is reported", func() bool { _, _, unreadable := published.counts(); return unreadable > before })
		if !published.serves(next) {
			t.Error("documents are not served any more after their folder was removed")
		}
	}
}

func TestDirectoryKeepsTheLastGoodDocuments(t *testing.T) {
	volume := &volume{path: t.TempDir()}
	good := newDocuments(t)
	volume.update(t, documentFiles(good))
	published := follow(t, volume.path)
	testkit.Eventually(t, "good documents are served", func() bool { return published.serves(good) })
	for i, bad := range []string{"", "{", `{"keys":[]}`, strings.Repeat(" ", discovery.MaxDocumentBytes+1)} {
		files := documentFiles(good)
		files[discovery.JWKSKey] = []byte(bad)
		volume.update(t, files)
		testkit.Eventually(t, fmt.Sprintf("bad documents %d are refused", i), func() bool { _, refusals, _ := published.counts(); return refusals == i+1 })
		if !published.serves(good) {
			t.Errorf("bad documents %d took the place of good ones", i)
		}
	}
	next := newDocuments(t)
	volume.update(t, documentFiles(next))
	testkit.Eventually(t, "the next good documents are served", func() bool { return published.serves(next) })
}

func TestDirectoryRefusesWhatIsNoFile(t *testing.T) {
	folder := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(folder, discovery.JWKSKey), 0o700))
	put(t, filepath.Join(folder, discovery.ConfigurationKey), []byte("{}"))
	published := follow(t, folder)
	testkit.Eventually(t, "it is reported", func() bool { _, _, unreadable := published.counts(); return unreadable == 1 })
}

// TestReadTogetherNeverMixes swaps a volume as fast as it can while it is read.
func TestReadTogetherNeverMixes(t *testing.T) {
	volume := &volume{path: t.TempDir()}
	files := func(version string) map[string][]byte {
		return map[string][]byte{"a": []byte(version), "b": []byte(version)}
	}
	volume.update(t, files("0"))
	read, result := 0, make(chan error, 1)
	go func() {
		for range 2000 {
			pair, err := readTogether(1<<10, filepath.Join(volume.path, "a"), filepath.Join(volume.path, "b"))
			switch {
			case errors.Is(err, errUnstable) || errors.Is(err, os.ErrNotExist):
			case err != nil:
				result <- err
				return
			case string(pair[0].data) != string(pair[1].data):
				result <- fmt.Errorf("read version %s together with %s", pair[0].data, pair[1].data)
				return
			default:
				read++
			}
		}
		result <- nil
	}()
	for i := 1; ; i++ {
		select {
		case err := <-result:
			must(t, err)
			if read == 0 {
				t.Error("nothing could be read at all")
			}
			return
		default:
			volume.update(t, files(fmt.Sprint(i)))
		}
	}
}
