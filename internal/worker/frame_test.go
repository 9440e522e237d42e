// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bytes"
	"testing"
)

// FuzzReadAnswer reads untrusted bytes of a worker process.
func FuzzReadAnswer(f *testing.F) {
	f.Add(append(header{kind: messageResult, job: 1, length: 3}.bytes(), "abc"...))
	f.Add(append(header{kind: messageError, job: 1, length: 5}.bytes(), "short"...))
	f.Add(header{kind: messageLarge, job: 1}.bytes())
	f.Add(header{kind: messageResult, job: 1, length: 1 << 63}.bytes())
	f.Add(header{kind: messageJob, name: 4, files: 1, job: 1}.bytes())
	f.Fuzz(func(t *testing.T, sent []byte) {
		const limit = 100
		got, err := readAnswer(bytes.NewReader(sent), 1, limit)
		if err != nil {
			return
		}
		if got.kind == messageResult && len(got.data) > limit || len(got.data) > maxErrorText {
			t.Errorf("%d bytes of type %c were accepted", len(got.data), got.kind)
		}
		if !bytes.Equal(got.data, sent[headerSize:headerSize+len(got.data)]) {
			t.Error("the data differs from what was sent")
		}
	})
}

// FuzzHeader reads headers; an accepted one is encoded to the same bytes.
func FuzzHeader(f *testing.F) {
	f.Add(header{kind: messageJob, name: 4, files: 1, job: 7, length: 9}.bytes())
	f.Fuzz(func(t *testing.T, sent []byte) {
		if len(sent) < headerSize {
			return
		}
		encoded := [headerSize]byte(sent)
		if h, err := parseHeader(encoded); err == nil && !bytes.Equal(h.bytes(), encoded[:]) {
			t.Errorf("%x was read as %x", encoded, h.bytes())
		}
	})
}

// TestLimitsEncoding encodes and parses limits.
func TestLimitsEncoding(t *testing.T) {
	want := limits{memory: 1 << 40, output: 2, cpu: 3}
	if got := parseLimits([limitsSize]byte(want.bytes())); got != want {
		t.Errorf("got %v", got)
	}
}
