// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// SameSigner tells whether the authority that signs by the desired Secret of one is in the live Secret already, as the one
// that signs or as its successor: to write the Secret then takes no authority away that somebody put in its place.
func SameSigner(live, desired *unstructured.Unstructured) bool {
	was, is := contents(live), contents(desired)
	same := func(cert, key string) bool {
		return len(is[certFile]) > 0 && bytes.Equal(was[cert], is[certFile]) && bytes.Equal(was[key], is[keyFile])
	}
	return same(certFile, keyFile) || same(nextCert, nextKey)
}
