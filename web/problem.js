// What the server says is wrong: in its own words, and, as `errors`, which field: [{ pointer,
// detail }]. `status` is 0 if it does not answer.
export class Problem extends Error {
  constructor(status, detail, errors = []) {
    super(detail);
    this.status = status;
    this.errors = errors;
  }
}
