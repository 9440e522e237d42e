// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"io"
	"log"
	"sync"
)

// quietTurn serializes the callers of functions of Helm that write to the log of the process.
var quietTurn sync.Mutex

// Quietly calls a function of Helm's library and keeps what it says from the log: it quotes values, which may be secret.
func Quietly(call func() error) error {
	quietTurn.Lock()
	defer quietTurn.Unlock()
	before := log.Writer()
	log.SetOutput(&withoutHelm{before})
	defer log.SetOutput(before)
	return call()
}

// withoutHelm passes on what others write meanwhile.
type withoutHelm struct{ next io.Writer }

// said are texts that begin what Helm's library says about values.
var said = [][]byte{
	[]byte("warning: "), []byte("Warning: "), []byte("WARN "), []byte("Conflict: "), []byte("is table. Skipping"),
}

func (w *withoutHelm) Write(line []byte) (int, error) {
	for _, text := range said {
		if bytes.Contains(line, text) {
			return len(line), nil
		}
	}
	return w.next.Write(line)
}
