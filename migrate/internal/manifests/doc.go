// SPDX-License-Identifier: Apache-2.0

// Package manifests has the command manifests: from manifests of RukPak and OLM to those of Satchel. The translation itself is
// package translate.
package manifests
