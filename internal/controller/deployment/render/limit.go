// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/worker"
)

func isLimit(err error) bool {
	var limit *worker.LimitError
	return errors.As(err, &limit)
}

// Excesses remembers which conversions exceeded a limit, so that the same input is not converted again and again. The
// zero value is ready for use.
type Excesses struct {
	mu    sync.Mutex
	known map[types.NamespacedName]excess
}

type excess struct {
	about string
	times int
	err   *worker.LimitError
}

// Note records that a conversion exceeded a limit, and returns whether a retry cannot help. CPU time depends on the load
// of the machine, so that limit allows one retry.
func (e *Excesses) Note(key types.NamespacedName, about string, err *worker.LimitError) (final bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known == nil {
		e.known = map[types.NamespacedName]excess{}
	}
	was := e.known[key]
	if was.about != about {
		was = excess{about: about}
	}
	was.times++
	was.err = err
	e.known[key] = was
	return was.final()
}

func (e excess) final() bool { return e.err.Limit != worker.LimitCPU || e.times > 1 }

// Final returns the limit that the conversion of the same input exceeded before, if a retry cannot help.
func (e *Excesses) Final(key types.NamespacedName, about string) *worker.LimitError {
	e.mu.Lock()
	defer e.mu.Unlock()
	if was, known := e.known[key]; known && was.about == about && was.final() {
		return was.err
	}
	return nil
}

// Forget drops the record of an object.
func (e *Excesses) Forget(key types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.known, key)
}
