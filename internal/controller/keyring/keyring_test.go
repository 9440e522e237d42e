// SPDX-License-Identifier: Apache-2.0

package keyring_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/controller/keyring"
)

var (
	former = bytes.Repeat([]byte("a"), 32)
	latest = bytes.Repeat([]byte("b"), 32)
)

func ringOf(t *testing.T, data map[string][]byte) keyring.Ring {
	t.Helper()
	ring, err := keyring.New(data)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func TestNewRefuses(t *testing.T) {
	many := map[string][]byte{}
	for i := range 17 {
		many[strings.Repeat("k", i+1)] = former
	}
	for name, data := range map[string]map[string][]byte{
		"nothing": {}, "too short": {"1": former[:31]}, "too long": {"1": bytes.Repeat(former, 33)}, "too many": many,
		"one of two too short": {"1": former, "2": {}},
	} {
		if _, err := keyring.New(data); err == nil || strings.Contains(err.Error(), string(former[:8])) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The newest key signs, all keys verify, and a removed one does not.
func TestRotationOfSignatures(t *testing.T) {
	before, both := ringOf(t, map[string][]byte{"20260101T000000Z": former}), ringOf(t, map[string][]byte{"20260101T000000Z": former, "20260201T000000Z": latest})
	after := ringOf(t, map[string][]byte{"20260201T000000Z": latest})
	old, renewed := before.Sign("a", "b"), both.Sign("a", "b")
	for name, tc := range map[string]struct {
		got, want bool
	}{
		"former key":           {both.Verify(old, "a", "b"), true},
		"newest key":           {both.Verify(renewed, "a", "b"), true},
		"newest key signs":     {after.Verify(renewed, "a", "b"), true},
		"removed key":          {after.Verify(old, "a", "b"), false},
		"other parts":          {both.Verify(old, "ab", ""), false},
		"parts moved together": {both.Verify(old, "a\x00b"), false},
		"nothing":              {both.Verify("", "a", "b"), false},
		"no keys":              {keyring.Ring{}.Verify(keyring.Ring{}.Sign("a"), "a"), false},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %v", name, tc.got)
		}
	}
}

// The hash key stays the same through a rotation, also once the former key is removed; it belongs to one object.
func TestRotationOfHashKeys(t *testing.T) {
	before, both := ringOf(t, map[string][]byte{"1": former}), ringOf(t, map[string][]byte{"1": former, "2": latest})
	after := ringOf(t, map[string][]byte{"2": latest})
	first, wrapped := hashKey(t, before, "uid", "")
	if replica, _ := hashKey(t, ringOf(t, map[string][]byte{"1": former}), "uid", ""); !bytes.Equal(first, replica) {
		t.Error("two replicas with one key disagree")
	}
	if again, same := hashKey(t, before, "uid", wrapped); !bytes.Equal(first, again) || same != wrapped {
		t.Error("it changes without a rotation")
	}
	rotated, rewrapped := hashKey(t, both, "uid", wrapped)
	if !bytes.Equal(first, rotated) || rewrapped == wrapped {
		t.Error("a rotation changes the key, or leaves it encrypted with the former one")
	}
	if last, _ := hashKey(t, after, "uid", rewrapped); !bytes.Equal(first, last) {
		t.Error("it is lost with the former key")
	}
	for name, text := range map[string]string{"of a removed key": wrapped, "garbage": "x.y", "cut": rewrapped[:30], "empty": ""} {
		if fresh, _ := hashKey(t, after, "uid", text); bytes.Equal(fresh, first) {
			t.Errorf("%s: it is believed", name)
		}
	}
	if other, _ := hashKey(t, before, "other", wrapped); bytes.Equal(other, first) {
		t.Error("the key of one object is that of another one")
	}
	if _, _, err := (keyring.Ring{}).HashKey("uid", ""); err == nil {
		t.Error("there is a key without keys")
	}
}

func hashKey(t *testing.T, ring keyring.Ring, uid, wrapped string) (key []byte, now string) {
	t.Helper()
	key, now, err := ring.HashKey(uid, wrapped)
	if err != nil || len(key) != 32 || len(now) > 256 {
		t.Fatalf("%d bytes, %q, %v", len(key), now, err)
	}
	return key, now
}
