// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory/objectjson"
)

// Hash is a digest cut to eight bytes: enough to notice a change, small enough
// to keep three an object.
type Hash [8]byte

// Untraceable stands for the managed fields of an object that was applied and
// for which the API server recorded none (they are dropped when they grow too
// large). For such an object only UID, generation and resource version show changes.
var Untraceable = Hash{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// Unrecorded stands for the managed fields of an object that was applied and waits for its removal, where the inventory had no
// room for them: see Limit.compressReduced. It is no hash of any object, so that an object with it looks changed when it is planned again.
var Unrecorded = Hash{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe}

// IsZero tells that the hash is not known.
func (h Hash) IsZero() bool { return h == Hash{} }

// String is the unpadded URL alphabet of base64, or nothing when not known.
func (h Hash) String() string {
	if h.IsZero() {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(h[:])
}

func decodeHash(text string) (Hash, error) {
	if text == "" {
		return Hash{}, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != len(Hash{}) {
		return Hash{}, fmt.Errorf("%.32q is not a hash of eight bytes", text)
	}
	return Hash(raw), nil
}

// Hasher digests desired objects. It is not safe for concurrent use.
type Hasher struct {
	mac     hash.Hash
	encoded []byte
	encoder objectjson.Encoder
}

// NewHasher returns a Hasher with a key, which may be empty. With a key its hashes are an HMAC: readers of the status then cannot
// guess short Secret values offline. With another key every object looks changed once.
func NewHasher(key []byte) *Hasher {
	return &Hasher{mac: hmac.New(sha256.New, key)}
}

// Rendered digests a desired object in its canonical JSON.
func (h *Hasher) Rendered(object *unstructured.Unstructured) (Hash, error) {
	encoded, err := h.encoder.Append(h.encoded[:0], object.Object)
	if err != nil {
		return Hash{}, fmt.Errorf("hashing %s: %w", IDOf(object), err)
	}
	h.encoded = encoded
	h.mac.Reset()
	h.mac.Write(encoded)
	return cut(h.mac.Sum(nil)), nil
}

// HashFields digests the fields that the API server records as applied by the
// manager. It is zero when the object has no such entry: another client removed it,
// or we never wrote.
func HashFields(entries []metav1.ManagedFieldsEntry, manager string) Hash {
	for i := range entries {
		if isApplied(&entries[i], manager) && entries[i].FieldsV1 != nil {
			return hashFieldsV1(entries[i].FieldsV1.GetRawBytes())
		}
	}
	return Hash{}
}

func isApplied(entry *metav1.ManagedFieldsEntry, manager string) bool {
	return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// hashFieldsV1 digests the canonical form, because protobuf and JSON answers of
// the API server need not agree in order and white space.
func hashFieldsV1(raw []byte) Hash {
	if !isCanonical(raw) {
		raw = canonical(raw)
	}
	sum := sha256.Sum256(raw)
	return cut(sum[:])
}

// canonical returns JSON with sorted keys and without white space. What is no JSON stays as it is.
func canonical(raw []byte) []byte {
	var fields any
	if err := json.Unmarshal(raw, &fields); err == nil {
		if sorted, err := json.Marshal(fields); err == nil {
			return sorted
		}
	}
	return raw
}

// seenUID is how many bytes of a HashSeen are of the UID; the others are of the generation or resource version.
const seenUID = 4

// HashSeen digests what changes when an object is recreated or its content is
// written: the UID and the generation, or the resource version for kinds without
// generations. Its first half is of the UID alone: see SameObject.
func HashSeen(meta metav1.Object) Hash {
	version := "g" + strconv.FormatInt(meta.GetGeneration(), 10)
	if meta.GetGeneration() == 0 {
		version = "r" + meta.GetResourceVersion()
	}
	uid, moved := sha256.Sum256([]byte(meta.GetUID())), sha256.Sum256([]byte(string(meta.GetUID())+"/"+version))
	seen := cut(uid[:])
	copy(seen[seenUID:], moved[:])
	return seen
}

// SameObject tells whether two results of HashSeen are of one object: an object that
// was deleted and created again has another UID.
func (h Hash) SameObject(other Hash) bool {
	return !h.IsZero() && [seenUID]byte(h[:seenUID]) == [seenUID]byte(other[:seenUID])
}

func cut(sum []byte) Hash { return Hash(sum[:len(Hash{})]) }
