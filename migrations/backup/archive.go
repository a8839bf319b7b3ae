// Package backup writes an instance into one file while it runs, checks such a file, and makes a data folder
// of it.
//
// The file is a tar archive, compressed with gzip: backup.json, the database, the secret, the groups' folders
// and the attachments, then manifest.json with a checksum of each of these parts. GNU tar unpacks it, and sqlite3 opens
// the database.
package backup

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Names in the archive, and in the data folder.
const (
	headName     = "backup.json"
	manifestName = "manifest.json"
	databaseName = "arizuko.db"
	secretName   = "secret"
	groupsName   = "groups"
	mediaName    = "media"
)

const (
	// formatVersion is that of the archive's layout.
	formatVersion = 2
	// maxHead and maxManifest bound how much of the two JSON files is read, in bytes.
	maxHead, maxManifest = 64 << 10, 4 << 20
	// maxTarget is the longest target of a link, in bytes: PATH_MAX of Linux without the zero.
	maxTarget = 4095
)

// ErrInvalid is an archive that no backup has written, or that was damaged since.
var ErrInvalid = errors.New("this is not a whole backup")

// Head is backup.json, the first file of an archive.
type Head struct {
	Format    int       `json:"format"`
	Version   string    `json:"version"`    // of the program
	Schema    int       `json:"schema"`     // version of the database's schema
	Floor     int       `json:"floor"`      // the oldest schema whose programs may use the database
	Instance  string    `json:"instance"`   // host and data folder
	CreatedAt time.Time `json:"created_at"` // no later than the moment that the database is of
	Database  int64     `json:"database"`   // size in bytes
}

// Manifest is manifest.json, the last file.
type Manifest struct {
	Parts map[string]Part `json:"parts"` // by the first element of a path
	Notes Notes           `json:"notes"`
}

// Part describes the archive's copy of a file or folder of the data folder.
type Part struct {
	Entries int64  `json:"entries"`
	Bytes   int64  `json:"bytes"` // of content
	SHA256  string `json:"sha256"`
}

// Notes count the files that are not in the archive as they were in a folder.
type Notes struct {
	Changed    int64    `json:"changed"`    // while it was read: the stored content may be of several moments
	Vanished   int64    `json:"vanished"`   // removed between listing and reading
	Skipped    int64    `json:"skipped"`    // sockets, pipes, devices, folders too deep
	Unreadable int64    `json:"unreadable"` // by this user, or because of a fault of the disk
	First      []string `json:"first,omitempty"`
}

// digest is the checksum of a part. It covers everything that a restore uses, whatever tar makes of it.
type digest struct {
	hash           hash.Hash
	entries, bytes int64
}

func (d *digest) Write(p []byte) (int, error) {
	d.bytes += int64(len(p))
	return d.hash.Write(p)
}

// begin adds an entry's header. Its last field is empty: earlier versions had the map of a sparse file there.
func (d *digest) begin(h *tar.Header) {
	d.entries++
	fmt.Fprintf(d.hash, "%q %d %o %d %d %d %d %q \"\"\n", h.Name, h.Typeflag, h.Mode, h.Uid, h.Gid, h.Size,
		h.ModTime.Unix(), h.Linkname)
}

// digests are those of all parts, by name.
type digests map[string]*digest

func (all digests) of(name string) *digest {
	part, _, _ := strings.Cut(name, "/")
	if all[part] == nil {
		all[part] = &digest{hash: sha256.New()}
	}
	return all[part]
}

func (all digests) parts() map[string]Part {
	parts := map[string]Part{}
	for name, d := range all {
		parts[name] = Part{Entries: d.entries, Bytes: d.bytes, SHA256: hex.EncodeToString(d.hash.Sum(nil))}
	}
	return parts
}

// checkEntry returns an error for an entry that no backup has written: one that would be outside of the data folder,
// or is of a type that its place does not have.
func checkEntry(h *tar.Header) error {
	name := h.Name
	if h.Typeflag == tar.TypeDir {
		name = strings.TrimSuffix(name, "/")
	}
	for record := range h.PAXRecords {
		if strings.HasPrefix(record, "GNU.sparse.") { // tar.Reader would return the holes, of any size
			return fmt.Errorf("%w: %.200q is a sparse file, which only earlier versions stored: use the dashd that "+
				"made the backup",
				ErrInvalid, h.Name)
		}
	}
	if !validName(name) || h.Size < 0 || len(h.Linkname) > maxTarget || strings.Count(name, "/") > maxDepth+2 {
		return fmt.Errorf("%w: invalid name, link or size of %.200q", ErrInvalid, h.Name)
	}
	allowed := false
	switch part, _, below := strings.Cut(name, "/"); part {
	case headName, manifestName, databaseName, secretName:
		allowed = h.Typeflag == tar.TypeReg && !below
	case mediaName:
		allowed = h.Typeflag == tar.TypeDir || h.Typeflag == tar.TypeReg && below
	case groupsName:
		switch h.Typeflag {
		case tar.TypeDir:
			allowed = true
		case tar.TypeReg, tar.TypeSymlink:
			allowed = below
		case tar.TypeLink:
			allowed = below && validName(h.Linkname) && strings.HasPrefix(h.Linkname, groupsName+"/")
		}
	}
	if !allowed {
		return fmt.Errorf("%w: %q is of a type that a backup does not have there", ErrInvalid, h.Name)
	}
	return nil
}

// validName reports whether a path is below the data folder, in its shortest form.
func validName(name string) bool {
	return filepath.IsLocal(name) && path.Clean(name) == name && name != "." && !strings.ContainsRune(name, 0)
}
