// Package page serves the web pages of the fake chat platforms: their chats and threads, the messages, and a form to
// write, reply, edit and react as one of several users. It is one page; a [platform] fills it.
package page

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

const maxForm = 32 << 20 // bytes, with the attached file

//go:embed page.html page.js page.css
var assets embed.FS

// options describe a platform.
type options struct {
	Platform string                 // "Telegram"
	Bot      string                 // the bot's name, as in "… is typing"
	Mention  string                 // the text that mentions the bot
	Emoji    []string               // offered as reactions
	Typing   time.Duration          // how long the platform shows that the bot types
	isAPI    func(path string) bool // reports whether a path belongs to the platform
}

// under reports whether a path begins with one of the prefixes.
func under(prefixes ...string) func(path string) bool {
	return func(path string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
	}
}

// place is a chat, or a thread of it if Thread is set, seen by the user whose id is As.
type place struct {
	Chat, Thread, As string
}

// chat is one chat. A request without a user acts as the first of Users.
type chat struct {
	ID, Name string
	Users    []user
	Threads  []thread
	Whole    string // the name of the view outside threads; "" if the chat has none
}

// thread is a thread, topic or post in a chat.
type thread struct {
	ID, Name string
}

// user is the author of messages.
type user struct {
	ID, Name string
	Bot      bool
}

// message is a message as the page shows it.
type message struct {
	ID        string
	From      user
	Time      time.Time
	Thread    string // the name of its thread, in a view of several threads
	Branch    string // the id of the thread that begins with it, or would begin
	Answered  string // the message that it replies to, in short
	Text      string
	Note      string // describes content that is not text
	Photo     string // the id of an image
	File      string // the id of another file
	FileName  string
	Edited    bool
	Reactions []string
	Buttons   []button
}

// attach adds a file. The first image is shown.
func (m *message) attach(id, name, contentType string, size int64) {
	if strings.HasPrefix(contentType, "image/") && m.Photo == "" {
		m.Photo = id
		return
	}
	m.File, m.FileName = id, fmt.Sprintf("%s, %d bytes", name, size)
}

// button is a button below a message.
type button struct {
	Label, Data string
}

// buttons are buttons, in the order of their data.
func buttons(dataByLabel map[string]string) (all []button) {
	for label, data := range dataByLabel {
		all = append(all, button{label, data})
	}
	slices.SortFunc(all, func(a, b button) int { return strings.Compare(a.Data, b.Data) })
	return all
}

// draft is a message to send.
type draft struct {
	Text    string
	ReplyTo string
	File    *file
}

// file is a file with its content.
type file struct {
	Name string
	MIME string // of one to send
	Data []byte
}

// platform is a fake as its users see it. Errors are shown to the reader of the page.
type platform interface {
	// Changed returns a channel that is closed when anything happens.
	Changed() <-chan struct{}
	chats() []chat
	// messages are oldest first.
	messages(at place) []message
	actions
	// lastTyped is when the bot began to type, the zero time if it has sent something since.
	lastTyped(at place) time.Time
	file(id string) (file, bool)
}

// actions are those of a user of the page.
type actions interface {
	post(at place, d draft) error
	edit(at place, id, text string) error
	// react adds a reaction of the user; "" removes all of the user's reactions.
	react(at place, id, emoji string) error
	press(at place, id, data string) error
}

// page serves the page of one platform.
type page struct {
	options
	platform platform
	view     *template.Template
}

// serve serves the page at /, with its files and forms. Requests of the platform go to api.
func serve(o options, platform platform, api http.Handler) http.Handler {
	p := &page{options: o, platform: platform, view: template.Must(template.ParseFS(assets, "page.html"))}
	pages := http.NewServeMux()
	pages.HandleFunc("GET /{$}", p.show)
	pages.HandleFunc("GET /events", p.events)
	pages.HandleFunc("GET /files/{id}", p.file)
	pages.HandleFunc("POST /send", p.send)
	pages.HandleFunc("POST /react", p.onMessage("emoji", platform.react))
	pages.HandleFunc("POST /press", p.onMessage("button", platform.press))
	for _, name := range []string{"page.js", "page.css"} {
		pages.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, assets, name)
		})
	}
	guarded := http.NewCrossOriginProtection().Handler(guard(pages))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.isAPI(r.URL.Path) {
			api.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

// CheckLocal returns an error unless addr, "host:port", is a loopback address: a fake has no login.
func CheckLocal(addr string) error {
	if host, _, err := net.SplitHostPort(addr); err != nil || !loopback(host) {
		return fmt.Errorf("-addr %s: want a loopback address of this machine, such as 127.0.0.1:8181: a fake has no login",
			addr)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// guard refuses other host names: a web site could let one resolve to this machine (DNS rebinding).
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if !loopback(host) {
			http.Error(w, "this page is for this machine only", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Security-Policy",
			"default-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'")
		next.ServeHTTP(w, r)
	})
}

// where is the place of a request, and the message to reply to or to edit.
type where struct {
	place
	Reply, Edit string
}

func whereOf(values url.Values) where {
	return where{place{values.Get("chat"), values.Get("topic"), values.Get("as")}, values.Get("reply"), values.Get("edit")}
}

// link is the URL of the page with one thing changed.
func (w where) link(change func(*where)) string {
	change(&w)
	values := url.Values{}
	for name, value := range map[string]string{
		"chat": w.Chat, "topic": w.Thread, "as": w.As, "reply": w.Reply, "edit": w.Edit,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return "/?" + values.Encode()
}

// resolve finds the chat of a request, and fills in a missing chat, user or thread.
func (p *page) resolve(at *where) (chat, bool) {
	for _, c := range p.platform.chats() {
		if c.ID != at.Chat && at.Chat != "" {
			continue
		}
		at.Chat = c.ID
		if !slices.ContainsFunc(c.Users, func(u user) bool { return u.ID == at.As }) {
			at.As = c.Users[0].ID
		}
		if at.Thread == "" && c.Whole == "" && len(c.Threads) > 0 {
			at.Thread = c.Threads[0].ID
		}
		return c, true
	}
	return chat{}, false
}

func (p *page) show(w http.ResponseWriter, r *http.Request) {
	at := whereOf(r.URL.Query())
	c, found := p.resolve(&at)
	if !found {
		http.Error(w, "no such chat", http.StatusNotFound)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	if err := p.view.Execute(w, p.viewOf(at, c)); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// events sends "changed" at each change, and every Typing, after which typing is over.
func (p *page) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	ticker := time.NewTicker(p.Typing)
	defer ticker.Stop()
	for {
		changed := p.platform.Changed()
		if _, err := io.WriteString(w, "data: changed\n\n"); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-changed:
		case <-ticker.C:
		case <-r.Context().Done():
			return
		}
	}
}

func (p *page) file(w http.ResponseWriter, r *http.Request) {
	f, found := p.platform.file(r.PathValue("id"))
	if !found {
		http.NotFound(w, r)
		return
	}
	// A bot's file is shown as an image or saved, and never runs as a page of this origin.
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if detected := http.DetectContentType(f.Data); strings.HasPrefix(detected, "image/") {
		w.Header().Set("Content-Type", detected)
	} else {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", "attachment; filename="+strconv.QuoteToASCII(path.Base(f.Name)))
	}
	_, _ = w.Write(f.Data)
}

// send posts, replies or edits.
func (p *page) send(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseMultipartForm(maxForm); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	sent, err := attached(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text := strings.ReplaceAll(r.PostForm.Get("text"), "\r\n", "\n")
	p.act(w, r, func(at where) error {
		switch {
		case at.Edit != "":
			return p.platform.edit(at.place, at.Edit, text)
		case text != "" || sent != nil:
			return p.platform.post(at.place, draft{Text: text, ReplyTo: at.Reply, File: sent})
		}
		return nil
	})
}

// attached returns the file of a form, nil without one.
func attached(r *http.Request) (*file, error) {
	f, header, err := r.FormFile("file")
	if err != nil || header.Size == 0 {
		return nil, nil // the field is optional
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	return &file{Name: header.Filename, MIME: http.DetectContentType(data), Data: data}, nil
}

// onMessage applies a form about a message, with a value in a field.
func (p *page) onMessage(field string, do func(at place, message, value string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
		if err := r.ParseForm(); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		p.act(w, r, func(at where) error { return do(at.place, r.PostForm.Get("message"), r.PostForm.Get(field)) })
	}
}

// act applies a form and redirects to its place.
func (p *page) act(w http.ResponseWriter, r *http.Request, do func(where) error) {
	at := whereOf(r.PostForm)
	if _, found := p.resolve(&at); !found {
		http.Error(w, "no such chat", http.StatusNotFound)
		return
	}
	if err := do(at); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, at.link(func(w *where) { w.Reply, w.Edit = "", "" }), http.StatusSeeOther)
}
