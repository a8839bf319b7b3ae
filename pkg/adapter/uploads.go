package adapter

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"arizuko/pkg/disk"
	"arizuko/pkg/msg"
)

const (
	// uploadPrefix begins the names of files that were uploaded.
	uploadPrefix = "up-"
	// maxType bounds the type that a client states, in bytes.
	maxType = 100
)

// FileError is why a file that a client sends is not stored. Its text is for the user.
type FileError struct {
	TooLarge bool // else there is no room for it
	Later    bool // there may be room soon
	text     string
}

func (e *FileError) Error() string { return e.text }

// ReadError wraps the error of the reader of an uploaded file.
type ReadError struct{ Err error }

func (e *ReadError) Error() string { return fmt.Sprintf("the file did not arrive whole: %v", e.Err) }

// Unwrap returns the reader's error.
func (e *ReadError) Unwrap() error { return e.Err }

// Uploads stores files that come with a message, before the row that names them: those of a platform that sends files
// along, instead of references to download. They are media/<month>/up-<id>-<n>-<name>. Files that no row names, since
// the process was killed, are removed by gated after a day.
type Uploads struct {
	shell  *Shell
	limits *mediaLimits
	space  func(folder string) (disk.Space, error)
}

// NewUploads returns the uploads of a shell. There is one for each shell.
func NewUploads(s *Shell) *Uploads {
	return &Uploads{shell: s, limits: newMediaLimits(s), space: disk.Of}
}

// UploadedFiles are the files of one message.
type UploadedFiles struct {
	all     *Uploads
	chatJID string
	root    *os.Root // the data folder
	prefix  string   // begins the paths of the files
	kept    int64    // bytes, reserved
	files   []msg.Attachment
}

// Begin prepares for the files of a message of a chat. The caller calls End.
func (u *Uploads) Begin(chatJID string) (f *UploadedFiles, err error) {
	month := path.Join(mediaFolder, u.shell.Now().UTC().Format("200601"))
	f = &UploadedFiles{all: u, chatJID: chatJID, prefix: path.Join(month, uploadPrefix+rand.Text())}
	if f.root, err = os.OpenRoot(u.shell.Data); err != nil {
		return nil, err
	}
	if err := f.root.MkdirAll(month, 0o700); err != nil {
		_ = f.root.Close()
		return nil, noSpace(err)
	}
	return f, nil
}

// Count is the number of files so far.
func (f *UploadedFiles) Count() int { return len(f.files) }

// Add stores a file under a name and of a type that the client states. largest is its greatest possible size in bytes,
// as far as the client says. The error is a *FileError, a *ReadError of r, or one of the disk or the database.
func (f *UploadedFiles) Add(ctx context.Context, name, kind string, largest int64, r io.Reader) error {
	limits, limit := f.all.limits, f.all.shell.MediaMax
	name = msg.FileName(name[strings.LastIndexAny(name, `/\`)+1:])
	reserved := min(largest, limit)
	if err := limits.reserve(ctx, f.chatJID, reserved); err != nil {
		return fileError(err)
	}
	if space, err := f.all.space(f.all.shell.Data); err != nil || space.Free < disk.Full+reserved {
		limits.release(f.chatJID, reserved, 0)
		return errors.Join(noSpace(syscall.ENOSPC), err)
	}
	to := fmt.Sprintf("%s-%d-%s", f.prefix, len(f.files), safeName(name))
	size, head, err := f.write(to, &boundedReader{r: r, limit: limit, name: name})
	if err != nil {
		limits.release(f.chatJID, reserved, 0)
		return err
	}
	limits.release(f.chatJID, reserved-size, 0)
	f.kept += size
	f.files = append(f.files, msg.Attachment{Name: name, MIME: uploadType(name, kind, head), Size: size, Path: to})
	return nil
}

// write makes a file, and returns its size and its beginning.
func (f *UploadedFiles) write(name string, r io.Reader) (size int64, head []byte, err error) {
	to, err := f.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return 0, nil, noSpace(err)
	}
	defer to.Close()
	if size, err = io.Copy(to, r); err == nil {
		head = make([]byte, min(size, maxHead))
		_, err = to.ReadAt(head, 0)
	}
	if err == nil {
		err = to.Sync()
	}
	if err != nil {
		_ = f.root.Remove(name) // else gated does
		return 0, nil, noSpace(err)
	}
	return size, head, nil
}

// Attachments returns the files for the row. It makes them new ones, which gated leaves alone: the first one of a long
// upload may be old.
func (f *UploadedFiles) Attachments() ([]msg.Attachment, error) {
	now := f.all.shell.Now()
	for _, a := range f.files {
		if err := f.root.Chtimes(a.Path, now, now); err != nil {
			return nil, err
		}
	}
	return slices.Clone(f.files), nil
}

// End removes the files unless row, that of the message or 0, names them. It is called once.
func (f *UploadedFiles) End(ctx context.Context, row int64) error {
	defer f.root.Close()
	named, err := f.names(context.WithoutCancel(ctx), row)
	if err != nil || named {
		f.all.limits.release(f.chatJID, f.kept, f.kept)
		return err
	}
	f.all.limits.release(f.chatJID, f.kept, 0)
	for _, a := range f.files {
		if failed := f.root.Remove(a.Path); !errors.Is(failed, fs.ErrNotExist) { // gated may have made room
			err = errors.Join(err, failed)
		}
	}
	return err
}

// names reports whether a row names the files.
func (f *UploadedFiles) names(ctx context.Context, row int64) (bool, error) {
	if row == 0 || len(f.files) == 0 {
		return false, nil
	}
	m, err := f.all.shell.Store.Message(ctx, row)
	if err != nil || m == nil {
		return false, err
	}
	return slices.ContainsFunc(m.Attachments, func(a msg.Attachment) bool { return a.Path == f.files[0].Path }), nil
}

// boundedReader fails where a file is larger than the limit, and tells a reader's errors from those of the disk.
type boundedReader struct {
	r           io.Reader
	limit, read int64
	name        string
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.read += int64(n); b.read > b.limit {
		return 0, &FileError{TooLarge: true,
			text: fmt.Sprintf("%q is larger than %d MiB, the limit for a file (MEDIA_MAX)", b.name, b.limit>>20)}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = &ReadError{err}
	}
	return n, err
}

// fileError makes an error of mediaLimits one for the user.
func fileError(err error) error {
	var failure *Failure
	if errors.As(err, &failure) {
		return &FileError{Later: failure.Class == msg.Transient, text: failure.Err.Error()}
	}
	return err
}

// noSpace makes an error of a full disk one for the user.
func noSpace(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &FileError{Later: true, text: "there is no room on the server's disk for files"}
	}
	return err
}

// uploadType returns the type of a file: of pictures by their content, else as the client states it.
func uploadType(name, stated string, head []byte) string {
	content, _, _ := strings.Cut(http.DetectContentType(head), ";")
	if strings.HasPrefix(content, "image/") {
		return content
	}
	kind, _, err := mime.ParseMediaType(stated)
	if err != nil || !strings.Contains(kind, "/") || len(kind) > maxType || kind == "application/octet-stream" {
		kind, _, _ = strings.Cut(mime.TypeByExtension(filepath.Ext(name)), ";")
	}
	if kind == "video/webm" && bytes.Contains(head, []byte("A_")) && !bytes.Contains(head, []byte("V_")) {
		return "audio/webm" // a browser's recording: its tracks are in its beginning
	}
	if kind == "" || msg.IsPicture(kind) {
		return content // a picture would have been recognised
	}
	return kind
}
