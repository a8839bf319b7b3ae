package webchat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"

	"arizuko/pkg/adapter"
	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

const (
	// MaxFiles is how many files a message of a page may have.
	MaxFiles = 10
	// maxFrame is the size of a form without its texts and files, in bytes.
	maxFrame = 64 << 10
)

// postForm stores a message with files, of a form whose fields are those of posted, and "file" for each file.
func (c *Chat) postForm(w http.ResponseWriter, r *http.Request, g *msg.Group) error {
	httpx.Upload(w, r, MaxFiles*c.Shell.MediaMax+maxText+maxFrame)
	u := &upload{chat: c, r: r, group: g}
	id, err := u.receive(r.Context())
	httpx.Drain(r)
	if err != nil {
		status, err := u.explain(err)
		httpx.ErrorStatus(w, status, err)
		return nil
	}
	httpx.JSON(w, http.StatusAccepted, map[string]int64{"id": id})
	return nil
}

// upload is a message with files that is being received.
type upload struct {
	posted
	chat  *Chat
	r     *http.Request
	group *msg.Group
	files *adapter.UploadedFiles
}

// receive reads the form and stores the message, once its files are whole. It returns the id of its row, which
// may also be there if it fails.
func (u *upload) receive(ctx context.Context) (id int64, err error) {
	defer func() {
		if u.files == nil {
			return
		}
		if err := u.files.End(ctx, id); err != nil {
			u.chat.Shell.Log.Error("removing uploaded files failed; gated removes them after a day", "chat",
				JID(u.group.Folder), "err", err)
		}
	}()
	if id, err = u.read(ctx); id != 0 || err != nil {
		return id, err
	}
	var files []msg.Attachment
	if u.files == nil {
		err = u.check(0)
	} else if err = u.check(u.files.Count()); err == nil {
		files, err = u.files.Attachments()
	}
	if err != nil {
		return 0, err
	}
	m := u.message(files)
	err = u.chat.receive(u.r, u.group, m, "the message could not be stored; send it again")
	return m.ID, err
}

// read reads the parts of the form. It returns the id of the row if the message is stored already: a client that
// names it before its files does not have them stored again.
func (u *upload) read(ctx context.Context) (id int64, err error) {
	parts, err := u.r.MultipartReader()
	if err != nil {
		return 0, apierr.New(apierr.BadRequest, "body: %w", err)
	}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return 0, nil
		}
		if err != nil {
			return 0, &adapter.ReadError{Err: err}
		}
		if part.FormName() != "file" {
			if err := u.field(part); err != nil {
				return 0, err
			}
			continue
		}
		if id, err := u.stored(ctx); id != 0 || err != nil {
			return id, err
		}
		if err := u.file(ctx, part); err != nil {
			return 0, err
		}
	}
}

// field reads a text.
func (u *upload) field(part *multipart.Part) error {
	name := part.FormName()
	to := map[string]*string{"text": &u.Text, "topic": &u.Topic, "client_id": &u.ClientID}[name]
	switch {
	case to == nil:
		return apierr.New(apierr.BadRequest, "body: unknown field %q; want text, topic, client_id and file", name)
	case *to != "":
		return apierr.New(apierr.BadRequest, "body: field %q is there twice", name)
	}
	content, err := io.ReadAll(io.LimitReader(part, maxText+1))
	if err != nil {
		return &adapter.ReadError{Err: err}
	}
	*to = string(content)
	return u.check(1) // a file may follow
}

// stored returns the row of a message that was stored before, 0 if it was not.
func (u *upload) stored(ctx context.Context) (int64, error) {
	if u.ClientID == "" {
		return 0, nil
	}
	m, err := u.chat.Store.MessageByPlatformID(ctx, JID(u.group.Folder), u.platformID())
	if err != nil || m == nil {
		return 0, err
	}
	return m.ID, nil
}

// file stores a file.
func (u *upload) file(ctx context.Context, part *multipart.Part) (err error) {
	if u.files == nil {
		if u.files, err = u.chat.Files.Begin(JID(u.group.Folder)); err != nil {
			return err
		}
	}
	if u.files.Count() == MaxFiles {
		return apierr.New(apierr.BadRequest, "file: a message has at most %d files", MaxFiles)
	}
	largest := u.r.ContentLength
	if largest < 0 {
		largest = u.chat.Shell.MediaMax // the client does not say
	}
	return u.files.Add(ctx, part.FileName(), part.Header.Get("Content-Type"), largest, part)
}

// explain makes an error one for the client, with its status.
func (u *upload) explain(err error) (status int, explained error) {
	var file *adapter.FileError
	var read *adapter.ReadError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, new(*apierr.Error)):
	case errors.As(err, &file) && file.TooLarge:
		return http.StatusRequestEntityTooLarge, apierr.New(apierr.BadRequest, "%w", err)
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge, apierr.New(apierr.BadRequest,
			"the files have more than %d MiB together: send fewer at once", large.Limit>>20)
	case file != nil:
		u.chat.Shell.Log.Warn("uploaded file refused", "chat", JID(u.group.Folder), "err", err)
		kind := apierr.Conflict
		if file.Later {
			kind = apierr.Unavailable
		}
		err = apierr.New(kind, "%w", err)
	case errors.As(err, &read):
		err = apierr.New(apierr.BadRequest, "body: %w", read.Err)
	default:
		err = fmt.Errorf("store uploaded file: %w", err)
	}
	return apierr.KindOf(err).Status(), err
}
