package pages

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/go-chi/chi/v5/middleware"
)

//go:embed assets
var assetFiles embed.FS

const assetRoot = "/assets/"

// assets serves embedded files at /assets/<version>/<name>. The version is a hash over all of
// them: scripts import each other by relative paths, so they can only change together.
type assets struct {
	version string
	files   map[string][]byte // by name
}

func loadAssets() (*assets, error) {
	a := &assets{files: map[string][]byte{}}
	hash := sha256.New()
	err := fs.WalkDir(assetFiles, "assets", func(name string, entry fs.DirEntry, err error) error { // in lexical order
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := assetFiles.ReadFile(name)
		a.files[strings.TrimPrefix(name, "assets/")] = content
		fmt.Fprintf(hash, "%s %d\n%s", name, len(content), content)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the assets: %w", err)
	}
	a.version = hex.EncodeToString(hash.Sum(nil))[:16]
	return a, nil
}

// url returns the address of an asset. An unknown name fails the template that has it.
func (a *assets) url(name string) (string, error) {
	if _, ok := a.files[name]; !ok {
		return "", fmt.Errorf("no asset %q", name)
	}
	return assetRoot + a.version + "/" + name, nil
}

func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	version, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, assetRoot), "/")
	content, ok := a.files[name]
	// Browsers would keep another version's file under this address for a year.
	if !ok || version != a.version {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", contentType(name))
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(content) // fails only once the client is gone
}

// Compress compresses pages, fragments and scripts. It leaves out streams, which would hold a compressor each, and
// files of messages. The length of a compressed answer may reveal a secret that stands beside a text that an attacker
// chooses: that is why it leaves out the login, and answers to forms, which may show a secret once.
func Compress(next http.Handler) http.Handler {
	const level = 5 // 100 kB take about 2 ms
	compressed := middleware.Compress(level, "text/html", "text/css", "text/javascript", "application/json",
		"image/svg+xml", "application/manifest+json")(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last := path.Base(r.URL.Path)
		if r.Method != http.MethodGet || last == "events" || last == "file" || last == "login" {
			next.ServeHTTP(w, r)
			return
		}
		compressed.ServeHTTP(w, r)
	})
}

// contentType is fixed here because package mime reads tables of the machine it runs on.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".webmanifest":
		return "application/manifest+json"
	}
	return "application/octet-stream"
}
