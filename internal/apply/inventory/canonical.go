// SPDX-License-Identifier: Apache-2.0

package inventory

// deepestFields is how deep isCanonical reads. Managed fields are as deep as the object, mostly less than 20.
const deepestFields = 100

// isCanonical tells, without decoding it, whether JSON is as canonical returns it. It knows what managed fields consist of, which is
// objects in objects, and may return false for other JSON. The API server mostly writes managed fields in this form, and to decode
// and encode them again would be the largest part of a comparison of unchanged objects.
func isCanonical(raw []byte) bool {
	rest, ok := skipObject(raw, 0)
	return ok && len(rest) == 0
}

// skipObject returns what follows an object at the beginning of the JSON, if the object is canonical.
func skipObject(raw []byte, depth int) (rest []byte, ok bool) {
	if depth > deepestFields || len(raw) < 2 || raw[0] != '{' {
		return nil, false
	}
	if raw[1] == '}' {
		return raw[2:], true
	}
	var before []byte
	for first := true; ; first = false {
		key, rest, ok := cutKey(raw[1:])
		if !ok || !first && !isLess(before, key) {
			return nil, false
		}
		if rest, ok = skipObject(rest, depth+1); !ok || len(rest) == 0 {
			return nil, false
		}
		switch rest[0] {
		case '}':
			return rest[1:], true
		case ',':
			raw, before = rest, key
		default:
			return nil, false
		}
	}
}

// cutKey splits JSON that begins with a key and a colon. The key keeps its escapes. It fails if the key has characters that could be
// encoded in another way: all but printable ASCII that HTML allows, quotes and backslashes.
func cutKey(raw []byte) (key, rest []byte, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return nil, nil, false
	}
	for i := 1; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			if i+1 == len(raw) || raw[i+1] != ':' {
				return nil, nil, false
			}
			return raw[1:i], raw[i+2:], true
		case c == '\\':
			if i++; i == len(raw) || raw[i] != '"' && raw[i] != '\\' {
				return nil, nil, false
			}
		case c < ' ', c >= 0x7f, c == '<', c == '>', c == '&':
			return nil, nil, false
		}
	}
	return nil, nil, false
}

// isLess compares two keys, of which quotes and backslashes are escaped, by the characters that they stand for.
func isLess(a, b []byte) bool {
	for len(a) > 0 && len(b) > 0 {
		if a[0] == '\\' && len(a) > 1 {
			a = a[1:]
		}
		if b[0] == '\\' && len(b) > 1 {
			b = b[1:]
		}
		if a[0] != b[0] {
			return a[0] < b[0]
		}
		a, b = a[1:], b[1:]
	}
	return len(a) < len(b)
}
