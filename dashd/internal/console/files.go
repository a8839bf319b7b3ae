package console

import (
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
)

const (
	// maxNames is how many names of a folder are read: as many are sorted and shown in pages.
	maxNames = 10_000
	// minDownloadRate is how slow a reader may be, in bytes a second.
	minDownloadRate = 20_000
)

var errNoFile = apierr.New(apierr.NotFound, "There is no such file in the folder of the group.")

// openIn opens a file or a folder of a group, for reading. No symbolic link is followed: agents write these folders.
func (c groupPages) openIn(folder, name string) (*os.File, error) {
	if msg.ValidFolder(folder) != nil || name != "" && (!fs.ValidPath(name) || strings.ContainsRune(name, 0)) {
		return nil, errNoFile
	}
	root, err := os.OpenRoot(path.Join(c.Data, "groups"))
	if err != nil {
		return nil, missing(err)
	}
	defer root.Close()
	full := path.Join(msg.DirName(folder), name)
	for i, r := range full + "/" {
		if r != '/' {
			continue
		}
		info, err := root.Lstat(full[:i])
		if err != nil {
			return nil, missing(err)
		}
		if kind := info.Mode().Type(); kind != 0 && kind != fs.ModeDir {
			return nil, apierr.New(apierr.NotFound, "%s is not a regular file: links and special files are not followed.",
				pages.Line(full[:i]))
		}
	}
	f, err := root.OpenFile(full, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0) // a named pipe would block
	return f, missing(err)
}

// missing words the errors of a name that leads to no file.
func missing(err error) error {
	for _, gone := range []error{fs.ErrNotExist, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.ELOOP} {
		if errors.Is(err, gone) {
			return errNoFile
		}
	}
	return err
}

// files lists a folder of a group by name, those after a name.
func (c groupPages) files(folder, dir, after string) (list pages.Files, err error) {
	list.Dir = dir
	f, err := c.openIn(folder, dir)
	if err != nil {
		if dir == "" && apierr.KindOf(err) == apierr.NotFound {
			err = nil // made with the first run
		}
		return list, err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxNames + 1)
	if list.Cut = len(entries) > maxNames; err != nil && len(entries) == 0 && !errors.Is(err, io.EOF) {
		return list, apierr.New(apierr.NotFound, "%s is no folder.", pages.Line(dir))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if e.Name() <= after {
			continue
		}
		if len(list.Lines) == maxRows {
			list.Next = list.Lines[maxRows-1].Name
			break
		}
		file := pages.FileLine{Name: e.Name(), Path: path.Join(dir, e.Name()),
			Folder: e.IsDir(), Regular: e.Type().IsRegular()}
		if info, err := e.Info(); err == nil { // it may be gone by now
			file.Size, file.At = info.Size(), info.ModTime().UnixMilli()
		}
		list.Lines = append(list.Lines, file)
	}
	return list, nil
}

// download answers with a file of a group, which no browser shows or runs.
func (c groupPages) download(w http.ResponseWriter, r *http.Request) error {
	name := r.URL.Query().Get("path")
	f, err := c.openIn(r.URL.Query().Get("group"), name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return errNoFile
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)}))
	h.Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute +
		time.Duration(info.Size())*time.Second/minDownloadRate))
	http.ServeContent(w, r, "", info.ModTime(), f)
	return nil
}
