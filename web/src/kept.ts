/** Last is an answer that a view may show again: what was answered, when, and of which version of its subject. */
interface Last {
  version: string;
  data: unknown;
  at: Date;
}

/**
 * Kept holds the last answers, by their questions: a view that was shown before is there at once, as old as it says. A
 * question has one answer, that of its newest version: a page that is open for days sees many versions of few things. The
 * answer that was not renewed for longest gives way to one of another question.
 */
export class Kept {
  private readonly answers = new Map<string, Last>();
  private readonly most: number;

  /** most is how many questions have an answer here. */
  constructor(most: number) {
    this.most = most;
  }

  get size(): number {
    return this.answers.size;
  }

  /** get returns the answer to a question about that version, and about no other. */
  get(question: string, version: string): { data: unknown; at: Date } | undefined {
    const last = this.answers.get(question);
    return last?.version === version ? { data: last.data, at: last.at } : undefined;
  }

  keep(question: string, version: string, data: unknown, at: Date): void {
    this.answers.delete(question);
    this.answers.set(question, { version, data, at });
    const oldest = this.answers.keys().next().value;
    if (this.answers.size > this.most && oldest !== undefined) this.answers.delete(oldest);
  }

  drop(question: string): void {
    this.answers.delete(question);
  }

  clear(): void {
    this.answers.clear();
  }
}
