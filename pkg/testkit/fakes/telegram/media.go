package telegram

import (
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strings"
)

// Dimensions and durations are made up: the fake does not decode media.
const (
	madeUpWidth    = 640
	madeUpHeight   = 480
	madeUpDuration = 3
)

// file is the file of a file_id.
type file struct {
	id, unique string
	kind       string // photo, document, video, audio, voice, video_note or sticker
	name, mime string
	path       string
	data       []byte
}

func (f *file) size() int64 { return int64(len(f.data)) }

// folder is the folder of a kind in the file_path of getFile.
func folder(kind string) string {
	switch kind {
	case "photo", "document", "video", "sticker":
		return kind + "s"
	case "audio":
		return "music"
	}
	return kind
}

func (s *Server) newFile(kind, name, contentType string, data []byte) *file {
	n := s.firstID + len(s.files) + 1
	if contentType == "" {
		contentType, _, _ = mime.ParseMediaType(mime.TypeByExtension(path.Ext(name))) // Telegram has no parameters
	}
	extension := path.Ext(name)
	if extension == "" {
		extension = map[string]string{"photo": ".jpg", "voice": ".oga", "sticker": ".webp", "video": ".mp4",
			"audio": ".mp3"}[kind]
	}
	f := &file{
		id: fmt.Sprintf("FAKE%s-%06d_id", kind, n), unique: fmt.Sprintf("FAKEu%06d", n), kind: kind, name: name,
		mime: contentType, path: fmt.Sprintf("%s/file_%d%s", folder(kind), n, extension),
		data: data,
	}
	s.files[f.id] = f
	return f
}

// attach adds a file to a message.
func (f *file) attach(m *Message) {
	media := Media{FileID: f.id, UniqueID: f.unique, Size: f.size()}
	named := media
	named.Name, named.MIME = f.name, f.mime
	timed := named
	timed.Duration = madeUpDuration
	framed := timed
	framed.Width, framed.Height = madeUpWidth, madeUpHeight
	switch f.kind {
	case "photo":
		small := Media{FileID: f.id + "s", UniqueID: f.unique + "s", Width: madeUpWidth / 8, Height: madeUpHeight / 8,
			Size: f.size() / 8}
		media.Width, media.Height = madeUpWidth, madeUpHeight
		m.Photo = []Media{small, media}
	case "document":
		m.Document = &named
	case "video":
		m.Video = &framed
	case "audio":
		m.Audio = &timed
	case "voice":
		media.Duration, media.MIME = timed.Duration, cmp.Or(f.mime, "audio/ogg")
		m.Voice = &media
	case "video_note":
		media.Duration = timed.Duration
		m.VideoNote = &media
	case "sticker":
		m.Sticker = &Sticker{FileID: f.id, UniqueID: f.unique, Type: "regular", Width: 512, Height: 512, Emoji: f.name,
			Size: f.size()}
	}
}

// sendFile returns the method that sends one kind of file. The parameter has the name of the kind.
func (s *Server) sendFile(kind string) func(params) (any, error) {
	return func(p params) (any, error) {
		r, err := s.writable(p)
		if err != nil {
			return nil, err
		}
		caption, entities, err := p.caption()
		if err != nil {
			return nil, err
		}
		if _, _, err := r.target(p, s.me); err != nil {
			return nil, err // the file is not stored yet
		}
		if r.voiceless && kind == "voice" {
			return nil, badRequest("VOICE_MESSAGES_FORBIDDEN")
		}
		f, err := s.inputFile(p, kind, p.str(kind), kind)
		if err != nil {
			return nil, err
		}
		m := &Message{Caption: caption, CaptionEntities: entities}
		f.attach(m)
		return s.deliver(p, r, m)
	}
}

// inputFile is a file parameter: the part of that name or of attach://, or the id of a stored file.
func (s *Server) inputFile(p params, field, value, kind string) (*file, error) {
	if name, ok := strings.CutPrefix(value, "attach://"); ok {
		field, value = name, ""
	}
	switch {
	case value != "":
		known := s.files[value]
		if known == nil {
			return nil, badRequest("wrong file identifier/HTTP URL specified")
		}
		again := *known
		again.kind = kind
		return &again, nil
	}
	upload, found := p.files[field]
	if !found {
		return nil, badRequest("there is no %s in the request", kind)
	}
	if err := checkUpload(upload, kind); err != nil {
		return nil, err
	}
	upload.Kind = kind
	p.files[field] = upload
	return s.newFile(kind, path.Base(upload.Name), "", upload.Data), nil
}

func checkUpload(u Upload, kind string) error {
	switch {
	case len(u.Data) == 0:
		return badRequest("file must be non-empty")
	case kind != "photo":
		return nil
	case len(u.Data) > maxPhoto:
		return badRequest("file of size %d bytes is too big for a photo; the maximum size is %d bytes", len(u.Data),
			maxPhoto)
	}
	return checkPhoto(u.Data)
}

func (s *Server) newAlbum() string {
	s.albums++
	return fmt.Sprintf("1380000%06d", s.firstID+s.albums)
}

func (s *Server) getFile(p params) (any, error) {
	f := s.fileByID(p.str("file_id"))
	switch {
	case f == nil:
		return nil, badRequest("invalid file_id")
	case len(f.data) > maxDownload && !s.local:
		return nil, badRequest("file is too big")
	}
	path := f.path
	if s.local {
		path = localFolder + s.token + "/" + path
	}
	return fields{"file_id": f.id, "file_unique_id": f.unique, "file_size": f.size(), "file_path": path}, nil
}

// localFolder is the working folder of a server with --local, in which each bot has one.
const localFolder = "/var/lib/telegram-bot-api/"

// fileByID finds a file. The id of a photo's small size is one of the photo.
func (s *Server) fileByID(id string) *file {
	if f := s.files[id]; f != nil {
		return f
	}
	return s.files[strings.TrimSuffix(id, "s")]
}

// download answers /file/bot<token>/<path>. Its faults have the method "download".
func (s *Server) download(w http.ResponseWriter, r *http.Request, path string) {
	f := s.NextFault("download")
	s.Hold(r.Context(), f.Delay)
	if f.answer(w) {
		return
	}
	found := s.fileAt(path)
	if found == nil || len(found.data) > maxDownload && !s.local {
		writeError(w, notFound())
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(found.data)
}

func (s *Server) fileAt(path string) *file {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		if f.path == path {
			return f
		}
	}
	return nil
}

// FileByID is the content of a file and its kind, for the page.
func (s *Server) FileByID(id string) (kind, name string, data []byte, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.fileByID(id)
	if f == nil {
		return "", "", nil, false
	}
	return f.kind, f.name, f.data, true
}
