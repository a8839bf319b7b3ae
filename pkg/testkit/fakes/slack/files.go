package slack

import (
	"cmp"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

const (
	uploadPath = "/upload/v1/"
	filesPath  = "/files-pri/"
	signInPath = "/signin"
	maxFile    = 1 << 30 // bytes
	// maxUploadBody is the limit of an upload, whatever length was announced.
	maxUploadBody = 64 << 20
	signInPage    = `<!DOCTYPE html><html lang="en"><head><title>Sign in | Slack</title></head><body><h1>Sign in to your workspace</h1></body></html>`
)

// file is an uploaded file.
type file struct {
	id, name, title, mime string
	by                    string
	created               int64
	data                  []byte
	announced             int64 // bytes that the upload must have
	uploaded              bool
	completed             bool
	shares                []share
	connect               bool
	durationMS            int64
	subtype               string
	hidden                int // calls of files.info that do not have the shares yet
}

type share struct {
	channel, kind, ts, thread string
}

func (s *Server) newFile(by User, a Attachment) *file {
	f := &file{
		id: s.id("F"), name: a.Name, title: a.Name, by: by.ID, created: time.Now().Unix(), data: a.Data,
		mime: cmp.Or(a.MIME, typeOf(a.Name, a.Data)), uploaded: true,
		completed: true,
		connect:   a.Connect,
	}
	if a.Voice {
		f.name, f.title, f.mime, f.subtype = "audio_message.mp4", "audio_message.mp4", "video/mp4", "slack_audio"
		f.durationMS = 3100
	}
	s.files[f.id] = f
	return f
}

func typeOf(name string, data []byte) string {
	kind := cmp.Or(mime.TypeByExtension(path.Ext(name)), http.DetectContentType(data))
	kind, _, _ = strings.Cut(kind, ";")
	return kind
}

// snapshot is a file as in a message.
func (f *file) snapshot(s *Server) File {
	if f.connect {
		return File{ID: f.id, Created: f.created, Timestamp: f.created, User: f.by, Mode: "file_access",
			FileAccess: "check_file_info"}
	}
	return f.whole(s)
}

// whole is a file as files.info answers it.
func (f *file) whole(s *Server) File {
	base := s.Base() + filesPath + teamID + "-" + f.id + "/"
	extension := strings.TrimPrefix(path.Ext(f.name), ".")
	return File{
		ID: f.id, Created: f.created, Timestamp: f.created, Name: f.name, Title: f.title, Mimetype: f.mime,
		Filetype: cmp.Or(extension, "binary"), PrettyType: strings.ToUpper(cmp.Or(extension, "binary")), User: f.by,
		Team: teamID,
		Mode: "hosted", Size: int64(len(f.data)), FileAccess: "visible", DurationMS: f.durationMS, Subtype: f.subtype,
		URLPrivate: base + url.PathEscape(f.name), URLPrivateDownload: base + "download/" + url.PathEscape(f.name),
		Permalink: s.Base() + "/files/" + f.by + "/" + f.id + "/" + url.PathEscape(f.name),
	}
}

func (s *Server) getUploadURL(p params) (any, error) {
	length := p.int("length", 0)
	switch {
	case p.str("filename") == "" || p.str("length") == "":
		return nil, errorCode("missing_argument")
	case length <= 0:
		return nil, errorCode("invalid_arguments")
	case length > maxFile:
		return nil, errorCode("file_upload_size_restricted")
	}
	f := &file{id: s.id("F"), name: p.str("filename"), title: p.str("filename"), by: s.me.ID,
		created: time.Now().Unix(), announced: int64(length)}
	s.files[f.id] = f
	return fields{"upload_url": s.Base() + uploadPath + f.id, "file_id": f.id}.ok(), nil
}

// upload receives the bytes of a file, raw or as the only part of a form.
func (s *Server) upload(w http.ResponseWriter, r *http.Request, id string) {
	f := s.NextFault("upload")
	data, err := uploaded(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.Around(r.Context(), f.Delay, f.After, func() { err = s.take(id, data, f) })
	switch {
	case f.answer(w):
	case err != nil:
		http.Error(w, "invalid upload", http.StatusBadRequest)
	default:
		_, _ = io.WriteString(w, "OK - "+strconv.Itoa(len(data)))
	}
}

func uploaded(r *http.Request) ([]byte, error) {
	body := io.LimitReader(r.Body, maxUploadBody)
	kind, options, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "multipart/form-data" {
		return io.ReadAll(body)
	}
	form := multipart.NewReader(body, options["boundary"])
	for {
		part, err := form.NextPart()
		if err != nil {
			return nil, err
		}
		if part.FileName() != "" {
			return io.ReadAll(part)
		}
	}
}

// take stores an upload, which must be as announced.
func (s *Server) take(id string, data []byte, f Fault) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch into := s.files[id]; {
	case f.refuses() && !f.After:
		err = fakeserver.ErrFault
	case into == nil || into.completed || int64(len(data)) != into.announced:
		err = &apiError{status: http.StatusBadRequest, code: "invalid_upload"}
	default:
		into.data, into.uploaded, into.mime = data, true, typeOf(into.name, data)
	}
	s.Add(recorded("upload", params{Params: fakeserver.Params{"file": id}}, nil, err, f))
	return err
}

type completed struct {
	OK      bool     `json:"ok"`
	Files   []titled `json:"files"`
	uploads []Upload // for the record
	ts      string   // of the message that shares them
}

type titled struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

// completeUpload shares uploaded files in a conversation, if it names one. As on Slack, the answer does not have the
// message that contains them; files.info does.
func (s *Server) completeUpload(p params) (any, error) {
	found, err := s.completing(p)
	if err != nil {
		return nil, err
	}
	var r *room
	if channel := p.str("channel_id"); channel != "" {
		if r, err = s.writable(channel); err != nil {
			return nil, err
		}
		if thread := p.str("thread_ts"); thread != "" && (r.root(thread) == nil || r.root(thread).isLocked) {
			return nil, errorCode("invalid_thread_ts")
		}
	}
	answer := completed{OK: true}
	for _, f := range found {
		f.completed, f.hidden = true, s.lag
		answer.Files = append(answer.Files, titled{f.id, f.title})
		answer.uploads = append(answer.uploads, Upload{ID: f.id, Name: f.name, Title: f.title, Data: f.data})
	}
	s.lag = 0
	if r != nil {
		answer.ts = s.share(r, found, p)
	}
	return answer, nil
}

// completing are the files of a request, which must all be uploaded.
func (s *Server) completing(p params) ([]*file, error) {
	var named []titled
	if given, valid := p.json("files", &named); !given || !valid || len(named) == 0 {
		return nil, errorCode("invalid_arguments")
	}
	var found []*file
	for _, n := range named {
		f := s.files[n.ID]
		if f == nil || !f.uploaded || f.completed {
			return nil, errorCode("file_not_found")
		}
		f.title = cmp.Or(n.Title, f.name)
		found = append(found, f)
	}
	return found, nil
}

// share posts files to a conversation.
func (s *Server) share(r *room, files []*file, p params) (ts string) {
	yes := true
	m := s.bot(&Message{Subtype: "file_share", Text: p.str("initial_comment"), Upload: &yes})
	for _, f := range files {
		m.Files = append(m.Files, f.snapshot(s))
	}
	s.say(r, m, p.str("thread_ts"))
	for _, f := range files {
		f.shared(r, m)
	}
	return m.TS
}

func (f *file) shared(r *room, m *Message) {
	f.shares = append(f.shares, share{channel: r.ID, kind: r.Kind, ts: m.TS, thread: m.ThreadTS})
}

// DelayShares makes the next n calls of files.info for each newly shared file answer without its
// shares: Slack is as slow.
func (s *Server) DelayShares(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = n
}

func (s *Server) fileInfo(p params) (any, error) {
	f := s.files[p.str("file")]
	if f == nil || !f.completed {
		return nil, errorCode("file_not_found")
	}
	public, private := map[string][]any{}, map[string][]any{}
	if f.hidden > 0 {
		f.hidden--
	} else {
		for _, at := range f.shares {
			entry := map[string]string{"ts": at.ts}
			if at.thread != "" {
				entry["thread_ts"] = at.thread
			}
			into := private
			if at.kind == Public {
				into = public
			}
			into[at.channel] = append(into[at.channel], entry)
		}
	}
	return fields{"file": struct {
		File
		Shares fields `json:"shares"`
	}{f.whole(s), fields{"public": public, "private": private}}}.ok(), nil
}

// download answers the URL of a file. As on Slack, an unauthorized caller is redirected to the
// sign-in page.
func (s *Server) download(w http.ResponseWriter, r *http.Request, rest string) {
	f := s.NextFault("download")
	s.Hold(r.Context(), f.Delay)
	if f.answer(w) {
		return
	}
	folder, _, _ := strings.Cut(rest, "/")
	found, allowed := s.fileFor(strings.TrimPrefix(folder, teamID+"-"),
		strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	switch {
	case !allowed:
		http.Redirect(w, r, signInPath+"?redir="+url.QueryEscape(r.URL.Path), http.StatusFound)
	case found == nil:
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", found.mime)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(found.data)
	}
}

func (s *Server) fileFor(id, token string) (found *file, allowed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[id]
	return f, token == s.o.BotToken && s.revoked[token] == "" && s.may("files:read")
}

func writePage(w http.ResponseWriter, page string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, page)
}

// FileByID is the content of a file, for the page.
func (s *Server) FileByID(id string) (name, contentType string, data []byte, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[id]
	if f == nil {
		return "", "", nil, false
	}
	return f.name, f.mime, f.data, true
}
