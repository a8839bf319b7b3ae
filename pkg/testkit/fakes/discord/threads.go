package discord

import (
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxThreadName  = 100
	defaultArchive = 4320 // minutes
)

// threadRequest is the body of the routes that start a thread.
type threadRequest struct {
	Name        string `json:"name"`
	AutoArchive int    `json:"auto_archive_duration"`
	Type        *int   `json:"type"`
}

func (t *threadRequest) read(q *request) error {
	if err := q.decode(t); err != nil {
		return err
	}
	t.Name = strings.TrimSpace(t.Name)
	switch {
	case t.Name == "":
		return required("name")
	case utf8.RuneCountInString(t.Name) > maxThreadName:
		return tooLong("name", maxThreadName)
	case t.AutoArchive != 0 && !slices.Contains([]int{60, 1440, 4320, 10080}, t.AutoArchive):
		return invalid("auto_archive_duration", "BASE_TYPE_CHOICES", "Value must be one of {60, 1440, 4320, 10080}.")
	}
	return nil
}

// openThread creates a thread, with an event if the bot can see it. A thread of a message, and a
// post of a forum, have the id of the message.
func (s *Server) openThread(parent *channel, kind int, id, name string, by User) *channel {
	if id == "" {
		id = s.newID()
	}
	at := s.now()
	t := s.newChannel(Channel{
		ID: id, Type: kind, Name: name, OwnerID: by.ID,
		Metadata: &ThreadMetadata{AutoArchiveDuration: defaultArchive, ArchiveTimestamp: at, CreateTimestamp: at},
	}, parent.guild, parent)
	t.members = []ThreadMember{{ID: id, UserID: by.ID, JoinTimestamp: at}}
	if parent.info.Type == Forum {
		parent.last = id // of a forum: the last post
	}
	s.threadCreate(t, true)
	return t
}

// threadCreate emits a thread that is new, or new to the bot.
func (s *Server) threadCreate(t *channel, isNew bool) {
	if s.sees(t) {
		shown := t.snapshot(s)
		shown.NewlyCreated = isNew
		s.emit(Guilds, "THREAD_CREATE", shown)
	}
}

// branch starts a thread from a message. The message refers to the thread, and the thread begins
// with a reference to the message.
func (s *Server) branch(ch *channel, m *Message, name string, by User) *channel {
	t := s.openThread(ch, PublicThread, m.ID, name, by)
	m.Flags |= HasThread
	shown := t.snapshot(s)
	m.Thread = &shown
	s.emitMessage("MESSAGE_UPDATE", ch, m)
	starter := s.add(t, &Message{
		Author: m.Author, Type: ThreadStarter,
		Reference: &Reference{MessageID: m.ID, ChannelID: ch.info.ID, GuildID: ch.info.GuildID},
	})
	s.emitMessage("MESSAGE_CREATE", t, starter)
	return t
}

// addThread starts a thread without a message. A public one is announced in its channel.
func (s *Server) addThread(ch *channel, kind int, name string, by User) *channel {
	t := s.openThread(ch, kind, "", name, by)
	if kind == PublicThread {
		m := s.add(ch, &Message{
			Author: by, Type: ThreadCreated, Content: name, Reference: &Reference{ChannelID: t.info.ID,
				GuildID: t.info.GuildID},
		})
		s.emitMessage("MESSAGE_CREATE", ch, m)
	}
	return t
}

func (s *Server) startThreadFromMessage(q *request, ch *channel, m *Message) (any, error) {
	var t threadRequest
	switch err := t.read(q); {
	case err != nil:
		return nil, err
	case ch.info.Type != Text:
		return nil, wrongType()
	case s.channels[m.ID] != nil:
		return nil, refuse(400, 160004, "A thread has already been created for this message")
	case !s.may(ch, CreatePublicThreads):
		return nil, missingPermissions()
	}
	return s.branch(ch, m, t.Name, s.me).snapshot(s), nil
}

// archive archives or unarchives a thread.
func (s *Server) archive(t *channel, isArchived, isLocked bool) {
	t.info.Metadata.Archived, t.info.Metadata.Locked, t.info.Metadata.ArchiveTimestamp = isArchived, isLocked, s.now()
	s.threadUpdate(t)
}

func (s *Server) threadUpdate(t *channel) {
	if s.sees(t) {
		s.emit(Guilds, "THREAD_UPDATE", t.snapshot(s))
	}
	s.Notify()
}

// enter adds a user to a thread. For the bot, a private one is new then.
func (s *Server) enter(t *channel, user User) {
	if t.threadMember(user.ID) != nil {
		return
	}
	m := ThreadMember{ID: t.info.ID, UserID: user.ID, JoinTimestamp: s.now()}
	t.members = append(t.members, m)
	if user.ID == s.me.ID {
		s.threadCreate(t, false)
	}
	s.membersUpdate(t, user, map[string]any{"added_members": []ThreadMember{m}})
}

// membersUpdate emits a change of the members: of the bot always, of others with the intent.
func (s *Server) membersUpdate(t *channel, user User, change map[string]any) {
	need := Guilds
	if user.ID != s.me.ID {
		need |= GuildMembers
	}
	change["id"], change["guild_id"], change["member_count"] = t.info.ID, t.info.GuildID, len(t.members)
	s.emit(need, "THREAD_MEMBERS_UPDATE", change)
}

func (s *Server) joinThread(_ *request, t *channel) (any, error) {
	switch {
	case !t.isThread():
		return nil, wrongType()
	case t.info.Metadata.Archived:
		return nil, archived()
	}
	s.enter(t, s.me)
	return nil, nil
}

// archivedThreads answers with a page of the archived threads of a channel: those of a kind for which is
// holds, in the order of by.
func (s *Server) archivedThreads(
	q *request, ch *channel, is func(*channel) bool, by func(a, b Channel) int,
) (any, error) {
	const minThreads, maxThreads, usualThreads = 2, 100, 50
	limit, err := q.number("limit", usualThreads, minThreads, maxThreads)
	switch {
	case err != nil:
		return nil, err
	case ch.isThread() || ch.info.Type != Text && ch.info.Type != Forum:
		return nil, wrongType()
	case !s.may(ch, ReadMessageHistory):
		return nil, missingAccess()
	}
	threads := []Channel{}
	for _, t := range s.channels {
		if t.isThread() && t.parent == ch && t.info.Metadata.Archived && is(t) {
			threads = append(threads, t.snapshot(s))
		}
	}
	slices.SortFunc(threads, by)
	count := min(limit, len(threads))
	page := threadList(threads[:count])
	page["has_more"] = count < len(threads)
	return page, nil
}

// listArchivedThreads lists the archived public threads, the last archived first.
func (s *Server) listArchivedThreads(q *request, ch *channel) (any, error) {
	before, err := q.moment("before")
	if err != nil {
		return nil, err
	}
	return s.archivedThreads(q, ch, func(t *channel) bool {
		return t.info.Type == PublicThread && (before.IsZero() || t.info.Metadata.ArchiveTimestamp.Before(before))
	}, func(a, b Channel) int { return b.Metadata.ArchiveTimestamp.Compare(a.Metadata.ArchiveTimestamp) })
}

// listJoinedArchivedThreads lists the archived private threads in which the bot is, the latest made first.
func (s *Server) listJoinedArchivedThreads(q *request, ch *channel) (any, error) {
	before, err := q.snowflake("before")
	if err != nil {
		return nil, err
	}
	return s.archivedThreads(q, ch, func(t *channel) bool {
		return t.info.Type == PrivateThread && t.threadMember(s.me.ID) != nil &&
			(before == "" || compareIDs(t.info.ID, before) < 0)
	}, func(a, b Channel) int { return compareIDs(b.ID, a.ID) })
}
