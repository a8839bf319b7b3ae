package adapter

import "sync"

// maxMemo is how many values a Memo holds.
const maxMemo = 10_000

// Memo remembers answers of a platform about a chat, a thread or a part. It forgets everything once it is full. The
// zero value is ready. It is safe for concurrent use.
type Memo[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]V
}

// Get returns the value of a key, the zero value if there is none.
func (m *Memo[K, V]) Get(key K) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key]
}

// Put sets the value of a key, and returns the one before.
func (m *Memo[K, V]) Put(key K, value V) (before V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before = m.values[key]
	if m.values == nil || len(m.values) >= maxMemo {
		m.values = map[K]V{}
	}
	m.values[key] = value
	return before
}

// Delete forgets a key.
func (m *Memo[K, V]) Delete(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
}
