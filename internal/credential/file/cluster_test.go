package file_test

import (
	"path/filepath"
	"testing"

	"github.com/credence-id/credence/internal/credential/file"
)

func TestWithCluster(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct {
		settings file.Settings
		config   string
		want     string // empty: it is refused
	}{
		{file.Settings{Path: "/a"}, ``, "/a"},
		{file.Settings{Path: "/a"}, `{"other": 1}`, "/a"},
		{file.Settings{Path: "/a"}, `"text"`, "/a"},
		{file.Settings{Path: "/a"}, `{"file": {"name": "b"}}`, ""},
		{file.Settings{Path: "/a"}, `{"file": {"path": "/b"}}`, ""},
		{file.Settings{Path: "/a", Folder: folder}, ``, ""},
		{file.Settings{Folder: folder}, `{"file": {"name": "b"}}`, filepath.Join(folder, "b")},
		{file.Settings{Folder: folder}, `{"file": {"name": "b.token"}}`, filepath.Join(folder, "b.token")},
		{file.Settings{Folder: folder}, ``, ""},
		{file.Settings{Folder: folder}, `{"file": {}}`, ""},
		{file.Settings{Folder: folder}, `{"file": 7}`, ""},
		{file.Settings{Folder: folder}, `{"file": {"name": "../b"}}`, ""},
		{file.Settings{Folder: folder}, `{"file": {"name": ".."}}`, ""},
		{file.Settings{Folder: folder}, `{"file": {"name": "..data"}}`, ""},
		{file.Settings{Folder: folder}, `{"file": {"name": "/b"}}`, ""},
		{file.Settings{Folder: folder}, `{"file": {"name": "a\\b"}}`, ""},
		{file.Settings{Folder: folder}, `{"file": {"name": "c:b"}}`, ""},
	} {
		got, err := c.settings.WithCluster([]byte(c.config))
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%+v with %s: %q, %v, want %q", c.settings, c.config, got, err, c.want)
		}
	}
}
