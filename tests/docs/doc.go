// SPDX-License-Identifier: Apache-2.0

// Package docs does what README and docs tell their readers to do: it runs the commands of each page in
// order, tries the manifests on an API server, and follows the links.
//
// Comments in the pages, which their readers do not see, say what a test has to know:
//
//	<!-- test: run SCRIPT -->         runs a shell script of its own here: what the reader has, or a check
//	<!-- test: skip REASON -->        the next block does not run; the reason is printed and counted
//	<!-- test: needs PROGRAM -->      the next block is left out, and counted, where there is no such program
//	<!-- test: exit CODE, REASON -->  the next block of commands ends with this exit code
//	<!-- test: may CODE, REASON -->   any of its commands may end with this exit code, and the others follow
//	<!-- test: file NAME -->          the next block is saved under this name, as its reader would
//	<!-- test: in KIND PATH -->       the next block of YAML is a part of an object, at a path such as spec.apply.crds
//	<!-- test: parse REASON -->       the next block of YAML is only parsed; the reason is printed and counted
//	<!-- test: output -->             the next block is what the block of commands before it prints
//	<!-- test: page kind KIND -->     of which kind the parts of objects on this page are
//	<!-- test: page needs PROGRAM --> this page is left out where there is no such program
//	<!-- test: page last REASON -->   this page comes after the others
//
// Blocks of sh run with the folder and the exported variables that the one before them left. Blocks of
// console are commands, after "$ ", with what they print. Blocks of yaml are applied to the API server as a
// dry run. Blocks of text are for people, and blocks of mermaid are diagrams. Lines of output have to come in the order of the page, with any
// lines between them; numbers, ages and digests may differ.
//
// The hosts of examples (registry.example.org, git.example.org and so on) are servers of the test.
package docs
