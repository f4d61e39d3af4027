// The compiler accepts a function without a body, see modinfo, only in a package with an assembly file.
