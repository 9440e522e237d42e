// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bytes"
	"testing"
)

// FuzzReadAnswer reads untrusted bytes of a worker process.
func FuzzReadAnswer(f *testing.F) {
	f.Add(append(Header{Kind: MessageResult, Job: 1, Length: 3}.Bytes(), "abc"...))
	f.Add(append(Header{Kind: MessageError, Job: 1, Length: 5}.Bytes(), "short"...))
	f.Add(Header{Kind: MessageLarge, Job: 1}.Bytes())
	f.Add(Header{Kind: MessageResult, Job: 1, Length: 1 << 63}.Bytes())
	f.Add(Header{Kind: MessageJob, Name: 4, Files: 1, Job: 1}.Bytes())
	f.Fuzz(func(t *testing.T, sent []byte) {
		const limit = 100
		got, err := ReadAnswer(bytes.NewReader(sent), 1, limit)
		if err != nil {
			return
		}
		if got.Kind == MessageResult && len(got.Data) > limit || len(got.Data) > MaxErrorText {
			t.Errorf("%d bytes of type %c were accepted", len(got.Data), got.Kind)
		}
		if !bytes.Equal(got.Data, sent[HeaderSize:HeaderSize+len(got.Data)]) {
			t.Error("the data differs from what was sent")
		}
	})
}

// FuzzHeader reads headers; an accepted one is encoded to the same bytes.
func FuzzHeader(f *testing.F) {
	f.Add(Header{Kind: MessageJob, Name: 4, Files: 1, Job: 7, Length: 9}.Bytes())
	f.Fuzz(func(t *testing.T, sent []byte) {
		if len(sent) < HeaderSize {
			return
		}
		encoded := [HeaderSize]byte(sent)
		if h, err := ParseHeader(encoded); err == nil && !bytes.Equal(h.Bytes(), encoded[:]) {
			t.Errorf("%x was read as %x", encoded, h.Bytes())
		}
	})
}

// TestLimitsEncoding encodes and parses limits.
func TestLimitsEncoding(t *testing.T) {
	want := Limits{Memory: 1 << 40, Output: 2, CPU: 3}
	if got := ParseLimits([LimitsSize]byte(want.Bytes())); got != want {
		t.Errorf("got %v", got)
	}
}
