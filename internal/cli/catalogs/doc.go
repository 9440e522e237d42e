// SPDX-License-Identifier: Apache-2.0

// Package catalogs reads the catalogs that the flag --catalog names, in folders and files.
package catalogs
