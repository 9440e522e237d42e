// SPDX-License-Identifier: Apache-2.0

package storage

import "path"

// byOwner holds a value for each of some files, in groups by the folder of their owner: what one owner has is found, and dropped,
// without going through the files of thousands of others.
type byOwner[V any] map[string]map[string]V

// get returns the value of a file.
func (b byOwner[V]) get(file string) (value V, found bool) {
	value, found = b[path.Dir(file)][file]
	return value, found
}

// set replaces the value of a file.
func (b byOwner[V]) set(file string, value V) {
	folder := path.Dir(file)
	if b[folder] == nil {
		b[folder] = map[string]V{}
	}
	b[folder][file] = value
}

// remove drops the value of a file.
func (b byOwner[V]) remove(file string) {
	folder := path.Dir(file)
	delete(b[folder], file)
	if len(b[folder]) == 0 {
		delete(b, folder)
	}
}
