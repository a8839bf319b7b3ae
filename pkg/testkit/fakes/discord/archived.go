package discord

import (
	"slices"
	"time"
)

// archivedPage is what the lists of archived threads have in common.
type archivedPage struct {
	ch    *channel
	limit int
	kind  int
	from  func(*channel) bool // those of the page and of later ones
	by    func(a, b Channel) int
}

// archivedOf reads what the requests for archived threads have in common.
func (s *Server) archivedOf(q *request, need Permission) (p archivedPage, err error) {
	const minThreads, maxThreads, usualThreads = 2, 100, 50
	if p.ch, err = s.readable(q); err != nil {
		return p, err
	}
	if p.limit, err = q.number("limit", usualThreads, minThreads, maxThreads); err != nil {
		return p, err
	}
	switch {
	case p.ch.isThread() || p.ch.info.Type != Text && p.ch.info.Type != Forum:
		return p, refuse(400, 50024, "Cannot execute action on this channel type")
	case !s.may(p.ch, need):
		return p, missingAccess()
	}
	return p, nil
}

// byTime makes a page of the threads that were archived before a time, the last archived first.
func (p *archivedPage) byTime(before time.Time) {
	p.from = func(t *channel) bool { return before.IsZero() || t.info.Metadata.ArchiveTimestamp.Before(before) }
	p.by = func(a, b Channel) int { return b.Metadata.ArchiveTimestamp.Compare(a.Metadata.ArchiveTimestamp) }
}

// archivedAnswer is the answer with a page.
func (s *Server) archivedAnswer(p archivedPage) map[string]any {
	threads, members := []Channel{}, []ThreadMember{}
	for _, t := range s.channels {
		if t.isThread() && t.parent == p.ch && t.info.Metadata.Archived && t.info.Type == p.kind && p.from(t) {
			threads = append(threads, t.snapshot(s))
		}
	}
	slices.SortFunc(threads, p.by)
	count := min(p.limit, len(threads))
	for _, t := range threads[:count] {
		if t.Member != nil {
			members = append(members, *t.Member)
		}
	}
	return map[string]any{"threads": threads[:count], "members": members, "has_more": count < len(threads)}
}

// listArchived lists archived threads of a kind.
func (s *Server) listArchived(q *request, kind int, need Permission) (any, error) {
	p, err := s.archivedOf(q, need)
	if err != nil {
		return nil, err
	}
	before, err := q.moment("before")
	if err != nil {
		return nil, err
	}
	p.kind = kind
	p.byTime(before)
	return s.archivedAnswer(p), nil
}

func (s *Server) listArchivedThreads(q *request) (any, error) {
	return s.listArchived(q, PublicThread, ReadMessageHistory)
}

func (s *Server) listPrivateArchivedThreads(q *request) (any, error) {
	return s.listArchived(q, PrivateThread, ReadMessageHistory|ManageThreads)
}

// listJoinedArchivedThreads lists the archived private threads in which the bot is, the latest made first.
func (s *Server) listJoinedArchivedThreads(q *request) (any, error) {
	p, err := s.archivedOf(q, ReadMessageHistory)
	if err != nil {
		return nil, err
	}
	before := q.query.Get("before")
	if _, ok := snowflake(before); before != "" && !ok {
		return nil, badSnowflake("before", before)
	}
	p.kind = PrivateThread
	p.from = func(t *channel) bool {
		return t.threadMember(s.me.ID) != nil && (before == "" || compareIDs(t.info.ID, before) < 0)
	}
	p.by = func(a, b Channel) int { return compareIDs(b.ID, a.ID) }
	return s.archivedAnswer(p), nil
}
