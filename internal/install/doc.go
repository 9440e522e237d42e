// SPDX-License-Identifier: Apache-2.0

// Package install knows the objects of which an installation of Satchel consists: those of config/default, and what
// options change in them. It is pure; who applies them is somebody else.
package install
