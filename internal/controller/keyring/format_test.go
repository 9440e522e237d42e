// SPDX-License-Identifier: Apache-2.0

package keyring_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/tests/formats"
)

// The example is a stored key that was encrypted once, and what it has to be decrypted to. Its nonce is random.
const wrapped = "hash-key/1:7afa05f29bc72731.rxMDj5g1XyujadSl1ncEJZLDqLhKRGbwEAuYbPHYVi3V7yEUMtXYZked60gA0Um59f2GldTgpStyNNsK"

func TestF56HashKey(t *testing.T) {
	ring := ringOf(t, map[string][]byte{"20260101T000000Z": former})
	derived, now, err := ring.HashKey("uid", "")
	if err != nil {
		t.Fatal(err)
	}
	opened, again, err := ring.HashKey("uid", wrapped)
	if err != nil || again != wrapped || !bytes.Equal(opened, derived) {
		t.Errorf("the stored key is not read any more: %x (%q, %v), want %x", opened, again, err, derived)
	}
	if strings.Split(now, ".")[0] != strings.Split(wrapped, ".")[0] || len(now) != len(wrapped) {
		t.Errorf("it is stored as %q, and was stored as %q", now, wrapped)
	}
	lines := []string{wrapped, hex.EncodeToString(opened), ring.Sign("a", "b")}
	formats.Golden(t, format.HashKey, []byte(strings.Join(lines, "\n")+"\n"))
}

// With a key of another version, hashes stay as they are unless the keys of the installation were rotated: it is derived again.
func TestF56HashKeyOfAnotherVersion(t *testing.T) {
	ring := ringOf(t, map[string][]byte{"20260101T000000Z": former})
	key, now, err := ring.HashKey("uid", "hash-key/99:"+strings.TrimPrefix(wrapped, format.HashKey.Name()+":"))
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := ring.HashKey("uid", wrapped)
	if err != nil || !bytes.Equal(key, want) || !strings.HasPrefix(now, format.HashKey.Name()) {
		t.Errorf("the key is %x (%q, %v), want %x", key, now, err, want)
	}
}
