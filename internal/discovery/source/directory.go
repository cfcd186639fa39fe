package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/filewatch"
)

// Directory reads the documents from the files openid-configuration.json and jwks.json of one folder, which may be a
// ConfigMap volume, and the time of their next change from next-change, if it is there. The folder may be missing, and may come, go and be replaced at any time.
type Directory struct {
	Path     string
	Interval time.Duration // between looks at the files; zero stands for one second
	Log      *slog.Logger
}

// Run publishes the documents and each change of them until ctx is done.
func (d Directory) Run(ctx context.Context, publisher Publisher) error {
	folder, err := filepath.Abs(d.Path)
	if err != nil {
		return fmt.Errorf("find documents folder %s: %w", d.Path, err)
	}
	configuration, jwks := filepath.Join(folder, discovery.ConfigurationKey), filepath.Join(folder, discovery.JWKSKey)
	nextChange, revoked := filepath.Join(folder, discovery.NextChangeKey), filepath.Join(folder, discovery.RevokedKey)
	feed := &feed{publisher: publisher, log: d.Log.With("folder", folder)}
	filewatch.Run(ctx, cmp.Or(d.Interval, filewatch.Interval), func() {
		files, err := readTogether(discovery.MaxDocumentBytes, configuration, jwks)
		if err != nil {
			feed.fail(err.Error(), err)
			return
		}
		feed.offer(found{files[0].data, files[1].data, readText(nextChange), readList(revoked)})
	}, configuration, jwks, nextChange, revoked)
	return nil
}

// readList returns the text of the list of revoked keys, which need not exist.
func readList(path string) string {
	data, err := readBounded(path, discovery.MaxDocumentBytes)
	if err != nil {
		return ""
	}
	return string(data)
}

// readText returns the text of a small file that need not exist. One that cannot be read gives no time that could be right.
func readText(path string) string {
	data, err := readBounded(path, 64)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return ""
	case err != nil:
		return err.Error()
	}
	return strings.TrimSpace(string(data))
}
