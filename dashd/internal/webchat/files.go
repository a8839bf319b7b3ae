package webchat

import (
	"cmp"
	"fmt"
	"image"
	_ "image/gif"  // for pictureSize
	_ "image/jpeg" // for pictureSize
	_ "image/png"  // for pictureSize
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	_ "golang.org/x/image/webp" // for pictureSize

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
)

// file is an attachment as pages see it.
type file struct {
	Name   string `json:"name"`
	MIME   string `json:"mime"`
	Size   int64  `json:"size"`
	URL    string `json:"url,omitempty"`   // its path, with a query
	Image  bool   `json:"image,omitempty"` // a browser may show it
	Width  int    `json:"width,omitempty"` // of an image, in pixels, 0 if it is not known
	Height int    `json:"height,omitempty"`
	Error  string `json:"error,omitempty"`
}

func (c *Chat) filesOf(m *msg.Message) (all []file) {
	for i, a := range m.Attachments {
		f := file{Name: cmp.Or(a.Name, path.Base(a.Path)), MIME: a.MIME, Size: a.Size, Error: a.Error}
		if a.Path != "" {
			f.URL = "/chat/" + msg.AddressedFolder(m.ChatJID) + "/file?" +
				url.Values{"message": {fmt.Sprint(m.ID)}, "n": {fmt.Sprint(i + 1)}}.Encode()
			if f.Image = msg.IsPicture(a.MIME); f.Image {
				f.Width, f.Height = c.pictureSize(a.Path)
			}
		}
		all = append(all, f)
	}
	return all
}

// maxPictureHead is how much of a picture is read for its size, in bytes: photos have a preview before it.
const maxPictureHead = 256 << 10

// pictureSize returns the size of a stored PNG, JPEG, GIF or WebP, zeros if it is not known. With it, a page keeps the
// room of a picture that it has not loaded yet.
func (c *Chat) pictureSize(stored string) (width, height int) {
	f, _, err := c.open(stored)
	if err != nil {
		return 0, 0
	}
	defer f.Close()
	size, _, _ := image.DecodeConfig(io.LimitReader(f, maxPictureHead)) // zeros for another format, or none
	return size.Width, size.Height
}

// open opens a stored file, which must be a regular one among the attachments.
func (c *Chat) open(stored string) (f *os.File, info os.FileInfo, err error) {
	if !strings.HasPrefix(path.Clean(stored), "media/") {
		return nil, nil, os.ErrNotExist
	}
	if f, err = os.OpenInRoot(c.Data, filepath.FromSlash(stored)); err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = os.ErrNotExist
	}
	if err != nil {
		f.Close()
	}
	return f, info, err
}

// File answers with an attachment of a message of the chat: shown by browsers if it is an image, else downloaded.
func (c *Chat) File(w http.ResponseWriter, r *http.Request, g *msg.Group) error {
	a, err := c.attachment(r, g)
	if err != nil {
		return err
	}
	f, info, err := c.open(a.Path)
	if err != nil {
		return apierr.New(apierr.NotFound, "the file is not stored any more")
	}
	defer f.Close()
	kind, how := "application/octet-stream", "attachment"
	if msg.IsPicture(a.MIME) {
		kind, how = a.MIME, "inline"
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", mime.FormatMediaType(how,
		map[string]string{"filename": cmp.Or(a.Name, path.Base(a.Path))}))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	h.Set("Cache-Control", "private, max-age=3600")
	// A slow reader keeps the answer, one that has stopped does not.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute +
		time.Duration(info.Size())*time.Second/minDownloadRate))
	http.ServeContent(w, r, "", info.ModTime(), f)
	return nil
}

// minDownloadRate is how slow a reader may be, in bytes a second.
const minDownloadRate = 20_000

// attachment returns the attachment that a request names: "message" is a row of the chat, "n" counts from 1.
func (c *Chat) attachment(r *http.Request, g *msg.Group) (a msg.Attachment, err error) {
	id, err := number(r.URL.Query().Get("message"), 0)
	n, errN := number(r.URL.Query().Get("n"), 1)
	if err != nil || errN != nil {
		return a, apierr.New(apierr.BadRequest, "message, n: must be numbers")
	}
	m, err := c.Store.Message(r.Context(), id)
	if err != nil {
		return a, err
	}
	none := apierr.New(apierr.NotFound, "message %d of this chat has no file %d", id, n)
	if m == nil || m.ChatJID != JID(g.Folder) || n < 1 || n > int64(len(m.Attachments)) {
		return a, none
	}
	changes, err := rows.Changes(r.Context(), c.Store.Reader, m)
	if err != nil {
		return a, err
	}
	deleted := slices.ContainsFunc(changes, func(change *msg.Message) bool { return change.Kind == msg.KindDelete })
	if a = m.Attachments[n-1]; a.Path == "" || deleted {
		return a, none
	}
	return a, nil
}
