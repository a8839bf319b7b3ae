package daemon

import (
	"context"
	"fmt"
	"slices"
	"time"

	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/store"
)

// Share divides n jobs evenly among the processes that call it with the same name, until ctx ends: each job is a lease.
// take is called at each change, with the jobs that this process has from now on. It returns once the process works on
// no other, which another may then take over. Share returns the error of ctx, and the cause if the process's own lease
// ends; once the work has ended, Unshare lets others have it.
func (l *Leases) Share(ctx context.Context, name string, n int,
	take func(ctx context.Context, has []bool) error) error {
	s := &shares{Leases: l, name: name, has: make([]bool, n)}
	ticker := time.NewTicker(claimEvery)
	defer ticker.Stop()
	outage := store.NewOutage(l.log, "divide leases")
	_ = outage.Note(ctx, s.join(ctx)) // balance repeats it
	for {
		_ = outage.Note(ctx, s.balance(ctx, take)) // the next one goes on
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.ended:
			return l.cause
		case <-ticker.C:
		}
	}
}

// unshareTime bounds the time that a process which ends takes to give its jobs up: else they are free once it has left.
const unshareTime = 2 * time.Second

// Unshare gives up the jobs of Share.
func (l *Leases) Unshare(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), unshareTime)
	defer cancel()
	_ = l.release(ctx, func(tx *store.Tx) error { return rows.LeaveLeases(tx, name+"/", l.ID) })
}

// shares are the jobs that this process has of those that several divide.
type shares struct {
	*Leases
	name string
	has  []bool
}

func (s *shares) lease(job int) string { return fmt.Sprintf("%s/%d", s.name, job) }

// member is the lease by which a process says that it takes jobs.
func (s *shares) member(process int64) string { return fmt.Sprintf("%s/of %d", s.name, process) }

// balance gives jobs up or takes some that are free, if this process has more or fewer than its part of them.
func (s *shares) balance(ctx context.Context, take func(context.Context, []bool) error) error {
	holders, err := rows.LeaseHolders(ctx, s.st.Reader, s.name+"/")
	if err != nil {
		return err
	}
	part, joined := s.part(holders)
	if !joined {
		return s.join(ctx)
	}
	var claims, extra []int
	kept := make([]bool, len(s.has))
	for _, holder := range []int64{s.ID, 0} { // first those that this process has
		for job := range s.has {
			switch {
			case holders[s.lease(job)] != holder:
			case part > 0:
				part--
				claims, kept[job] = append(claims, job), s.has[job]
			case holder == s.ID:
				extra = append(extra, job)
			}
		}
	}
	if err := s.giveUp(ctx, extra, kept, take); err != nil {
		return err
	}
	return s.claim(ctx, claims, take)
}

// join makes this process one of those that divide the jobs.
func (s *shares) join(ctx context.Context) error {
	return s.st.Write(ctx, func(tx *store.Tx) error {
		return rows.JoinLeases(tx, s.name+"/", s.member(s.ID), s.ID)
	})
}

// part is how many jobs this process has once each has its part, and whether it has joined those that divide them. The
// first of them have one more than others if they cannot be divided evenly.
func (s *shares) part(holders map[string]int64) (part int, joined bool) {
	var members []int64
	for lease, process := range holders {
		if process != 0 && lease == s.member(process) {
			members = append(members, process)
		}
	}
	slices.Sort(members)
	at, joined := slices.BinarySearch(members, s.ID)
	if !joined {
		return 0, false
	}
	if part = len(s.has) / len(members); at < len(s.has)%len(members) {
		part++
	}
	return part, true
}

// giveUp ends the work on all jobs but those that are kept, and then lets others have them.
func (s *shares) giveUp(ctx context.Context, jobs []int, kept []bool, take func(context.Context, []bool) error) error {
	if len(jobs) == 0 {
		return nil
	}
	if err := s.change(ctx, kept, take); err != nil {
		return err
	}
	return s.st.Write(ctx, func(tx *store.Tx) error {
		for _, job := range jobs {
			if err := rows.GiveUp(tx, s.lease(job), s.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// claim takes jobs, those that no other process takes just now.
func (s *shares) claim(ctx context.Context, jobs []int, take func(context.Context, []bool) error) error {
	if !slices.ContainsFunc(jobs, func(job int) bool { return !s.has[job] }) {
		return nil
	}
	var has []bool
	err := s.st.Write(ctx, func(tx *store.Tx) (err error) {
		has = slices.Clone(s.has) // it may be the second time
		for _, job := range jobs {
			if has[job], err = rows.Claim(tx, s.lease(job), s.ID); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.change(ctx, has, take)
}

func (s *shares) change(ctx context.Context, has []bool, take func(context.Context, []bool) error) error {
	if slices.Equal(has, s.has) {
		return nil
	}
	s.has = has
	count := 0
	for _, mine := range has {
		if mine {
			count++
		}
	}
	s.log.Info("work divided", "lease", s.name, "process", s.ID, "count", count)
	return take(ctx, slices.Clone(has))
}
