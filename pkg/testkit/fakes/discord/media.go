package discord

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Dimensions and durations are made up: the fake does not decode media.
const (
	madeUpWidth   = 640
	madeUpHeight  = 480
	madeUpSeconds = 3
)

// File is a file that a user sends.
type File struct {
	Name        string
	MIME        string // guessed from the name's extension, or the content, if empty
	Data        []byte
	Size        int64 // in bytes; of Data if 0, and may be more
	Description string
	Voice       bool // a voice message, which has no other content
}

// file is the file of an attachment.
type file struct {
	name string
	mime string
	data []byte
	path string
}

// signedFor is how long the URL of a file is valid. Discord sends a fresh one with each message that shows the file.
const signedFor = 24 * time.Hour

// signed is the URL of a file that is valid from now on.
func (s *Server) signed(path string) string {
	until := strconv.FormatInt(s.now().Add(signedFor).Unix(), 16)
	return s.Base() + path + "?ex=" + until + "&is=60000000&hm=" + s.signature(path, until) + "&"
}

func (s *Server) signature(path, until string) string {
	sum := sha256.Sum256([]byte(s.token + path + until))
	return hex.EncodeToString(sum[:])
}

// isSigned reports whether a URL is one of signed, and still valid.
func (s *Server) isSigned(u *url.URL) bool {
	until := u.Query().Get("ex")
	at, err := strconv.ParseInt(until, 16, 64)
	return err == nil && s.now().Unix() < at && u.Query().Get("hm") == s.signature(u.EscapedPath(), until)
}

// sign makes the URLs of attachments valid from now on.
func (s *Server) sign(attachments []Attachment) []Attachment {
	fresh := slices.Clone(attachments)
	for i := range fresh {
		if kept := s.files[fresh[i].ID]; kept != nil {
			fresh[i].URL = s.signed(kept.path)
			fresh[i].ProxyURL = fresh[i].URL
		}
	}
	return fresh
}

// attachmentRef describes an uploaded file, or keeps an existing attachment.
type attachmentRef struct {
	ID          any    `json:"id"` // the number in "files[0]", or a snowflake
	Filename    string `json:"filename"`
	Description string `json:"description"`
}

func (a attachmentRef) names(u Upload) bool { return u.Field == fmt.Sprintf("files[%v]", a.ID) }

// known reports whether it refers to an existing attachment.
func (a attachmentRef) known() bool {
	id, isText := a.ID.(string)
	_, isID := snowflake(id)
	return isText && isID && len(id) > 2
}

// keeps reports whether an edit that lists attachments lists one of the message.
func (o *outgoing) keeps(a Attachment) bool {
	return slices.ContainsFunc(o.Attachments, func(listed attachmentRef) bool { return listed.ID == a.ID })
}

func (o *outgoing) describe(u Upload) string {
	for _, a := range o.Attachments {
		if a.names(u) {
			return a.Description
		}
	}
	return ""
}

// newAttachment stores a file, and signs its URL.
func (s *Server) newAttachment(ch *channel, f File) Attachment {
	id := s.newID()
	name := cmp.Or(path.Base(f.Name), "unknown")
	kept := &file{
		name: name, mime: cmp.Or(f.MIME, mime.TypeByExtension(path.Ext(name)), http.DetectContentType(f.Data)),
		data: f.Data,
		path: "/attachments/" + ch.info.ID + "/" + id + "/" + url.PathEscape(name),
	}
	s.files[id] = kept
	address := s.signed(kept.path)
	a := Attachment{
		ID: id, Filename: name, Description: f.Description, ContentType: kept.mime,
		Size: max(f.Size, int64(len(f.Data))),
		URL:  address, ProxyURL: address,
	}
	if strings.HasPrefix(kept.mime, "image/") {
		a.Width, a.Height = madeUpWidth, madeUpHeight
	}
	if f.Voice {
		a.Seconds, a.Waveform = madeUpSeconds, "AAAA"
	}
	return a
}

// download answers the URL of an attachment, which needs no token.
func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	f := s.NextFault(Download)
	s.Hold(r.Context(), f.Delay)
	if f.answer(w) {
		return
	}
	s.mu.Lock()
	found := s.files[r.PathValue("attachment")]
	s.mu.Unlock()
	if found == nil || found.path != r.URL.EscapedPath() || !s.isSigned(r.URL) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("This content is no longer available."))
		return
	}
	w.Header().Set("Content-Type", found.mime)
	_, _ = w.Write(found.data)
}

// FileByID is the content of an attachment, for the page.
func (s *Server) FileByID(id string) (name, contentType string, data []byte, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[id]
	if f == nil {
		return "", "", nil, false
	}
	return f.name, f.mime, f.data, true
}
